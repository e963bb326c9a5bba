// The scenarios' words in sarama.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"pykafka.test/harness/tasks"
)

var codecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}

type worker struct {
	brokers   []string
	client    sarama.Client
	admin     sarama.ClusterAdmin
	producers map[string]sarama.SyncProducer
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Metadata.AllowAutoTopicCreation = false
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Retry.Max = 50
	return config
}

func main() {
	brokers := []string{os.Args[1]}
	client, err := sarama.NewClient(brokers, settings())
	if err != nil {
		panic(err)
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		panic(err)
	}
	w := &worker{brokers, client, admin, map[string]sarama.SyncProducer{}}
	tasks.Serve(map[string]func(tasks.Task) (tasks.Answer, error){
		"cluster": w.cluster, "create": w.create, "topics": w.topics, "delete": w.delete, "grow": w.grow,
		"configs": w.configs, "alter": w.alter, "trim": w.trim, "produce": w.produce, "consume": w.consume,
		"offset_at": w.offsetAt, "commit": w.commit, "committed": w.committed, "groups": w.groups, "forget": w.forget,
	})
}

func (w *worker) cluster(tasks.Task) (tasks.Answer, error) {
	found, _, err := w.admin.DescribeCluster()
	brokers := []string{}
	for _, broker := range found {
		brokers = append(brokers, broker.Addr())
	}
	return tasks.Answer{"brokers": brokers}, err
}

func pointers(configs map[string]string) map[string]*string {
	found := map[string]*string{}
	for name, value := range configs {
		found[name] = &value
	}
	return found
}

func (w *worker) create(task tasks.Task) (tasks.Answer, error) {
	wanted := &sarama.TopicDetail{NumPartitions: int32(task.Count), ReplicationFactor: 1,
		ConfigEntries: pointers(task.Configs)}
	return nil, w.admin.CreateTopic(task.Topic, wanted, false)
}

func (w *worker) topics(tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListTopics()
	topics := map[string]int32{}
	for name, topic := range found {
		topics[name] = topic.NumPartitions
	}
	return tasks.Answer{"topics": topics}, err
}

func (w *worker) delete(task tasks.Task) (tasks.Answer, error) {
	return nil, w.admin.DeleteTopic(task.Topic)
}

func (w *worker) grow(task tasks.Task) (tasks.Answer, error) {
	return nil, w.admin.CreatePartitions(task.Topic, int32(task.Count), nil, false)
}

func (w *worker) configs(task tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: task.Topic})
	configs := map[string]string{}
	for _, entry := range found {
		configs[entry.Name] = entry.Value
	}
	return tasks.Answer{"configs": configs}, err
}

func (w *worker) alter(task tasks.Task) (tasks.Answer, error) {
	changes := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range pointers(task.Configs) {
		changes[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: value}
	}
	return nil, w.admin.IncrementalAlterConfig(sarama.TopicResource, task.Topic, changes, false)
}

func (w *worker) trim(task tasks.Task) (tasks.Answer, error) {
	return nil, w.admin.DeleteRecords(task.Topic, map[int32]int64{task.Partition: task.Offset})
}

func encoder(data []byte) sarama.Encoder {
	if data == nil {
		return nil
	}
	return sarama.ByteEncoder(data)
}

func (w *worker) produce(task tasks.Task) (tasks.Answer, error) {
	producer, err := w.producer(task)
	if err != nil {
		return nil, err
	}
	messages := []*sarama.ProducerMessage{}
	for _, r := range task.Records {
		message := &sarama.ProducerMessage{Topic: task.Topic, Partition: r.Partition, Key: encoder(r.Key),
			Value: encoder(r.Value), Timestamp: time.UnixMilli(r.Timestamp)}
		for _, header := range r.Headers {
			pair := sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value}
			message.Headers = append(message.Headers, pair)
		}
		messages = append(messages, message)
	}
	if err := producer.SendMessages(messages); err != nil {
		if failed, many := err.(sarama.ProducerErrors); many {
			return nil, failed[0].Err
		}
		return nil, err
	}
	offsets := []int64{}
	for _, message := range messages {
		offsets = append(offsets, message.Offset)
	}
	return tasks.Answer{"offsets": offsets}, nil
}

func (w *worker) producer(task tasks.Task) (sarama.SyncProducer, error) {
	key := fmt.Sprint(task.Acks, task.Codec, task.Idempotent)
	if found := w.producers[key]; found != nil {
		return found, nil
	}
	config := settings()
	config.Producer.RequiredAcks = acks[task.Acks]
	config.Producer.Compression = codecs[task.Codec]
	if task.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	made, err := sarama.NewSyncProducer(w.brokers, config)
	if err == nil {
		w.producers[key] = made
	}
	return made, err
}

func (w *worker) consume(task tasks.Task) (tasks.Answer, error) {
	consumer, err := sarama.NewConsumer(w.brokers, settings())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	start := task.Offset
	if start < 0 {
		start = sarama.OffsetOldest
	}
	arrived := make(chan *sarama.ConsumerMessage)
	done := make(chan struct{})
	for _, number := range task.Partitions {
		partition, err := consumer.ConsumePartition(task.Topic, number, start)
		if err != nil {
			return nil, err
		}
		defer partition.AsyncClose()
		go func() {
			for message := range partition.Messages() {
				select {
				case arrived <- message:
				case <-done:
				}
			}
		}()
	}
	defer close(done)
	seen := []tasks.Record{}
	deadline := time.After(tasks.Seconds * time.Second)
	for len(seen) < task.Count {
		select {
		case m := <-arrived:
			headers := []tasks.Header{}
			for _, header := range m.Headers {
				headers = append(headers, tasks.Header{Name: string(header.Key), Value: header.Value})
			}
			seen = append(seen, tasks.Record{Partition: m.Partition, Offset: m.Offset,
				Timestamp: m.Timestamp.UnixMilli(), Key: m.Key, Value: m.Value, Headers: headers})
		case <-deadline:
			return tasks.Answer{"records": seen}, nil
		}
	}
	return tasks.Answer{"records": seen}, nil
}

func (w *worker) offsetAt(task tasks.Task) (tasks.Answer, error) {
	offset, err := w.client.GetOffset(task.Topic, task.Partition, task.Timestamp)
	return tasks.Answer{"offset": offset}, err
}

func (w *worker) commit(task tasks.Task) (tasks.Answer, error) {
	offsets, err := sarama.NewOffsetManagerFromClient(task.Group, w.client)
	if err != nil {
		return nil, err
	}
	defer offsets.Close()
	partition, err := offsets.ManagePartition(task.Topic, task.Partition)
	if err != nil {
		return nil, err
	}
	partition.MarkOffset(task.Offset, task.Note)
	partition.ResetOffset(task.Offset, task.Note)
	offsets.Commit()
	return nil, partition.Close()
}

func (w *worker) committed(task tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListConsumerGroupOffsets(task.Group, map[string][]int32{task.Topic: {task.Partition}})
	if err != nil {
		return nil, err
	}
	return tasks.Answer{"offset": found.GetBlock(task.Topic, task.Partition).Offset}, nil
}

func (w *worker) groups(tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListConsumerGroups()
	groups := []string{}
	for name := range found {
		groups = append(groups, name)
	}
	return tasks.Answer{"groups": groups}, err
}

func (w *worker) forget(task tasks.Task) (tasks.Answer, error) {
	return nil, w.admin.DeleteConsumerGroup(task.Group)
}
