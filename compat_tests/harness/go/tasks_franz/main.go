// The scenarios' words in franz-go and its kadm.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pykafka.test/harness/tasks"
)

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

type worker struct {
	bootstrap string
	admin     *kadm.Client
	producers map[string]*kgo.Client
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		panic(err)
	}
	w := &worker{os.Args[1], kadm.NewClient(client), map[string]*kgo.Client{}}
	tasks.Serve(map[string]func(tasks.Task) (tasks.Answer, error){
		"cluster": w.cluster, "create": w.create, "topics": w.topics, "delete": w.delete, "grow": w.grow,
		"configs": w.configs, "alter": w.alter, "trim": w.trim, "produce": w.produce, "consume": w.consume,
		"offset_at": w.offsetAt, "commit": w.commit, "committed": w.committed, "groups": w.groups, "forget": w.forget,
	})
}

func soon() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), tasks.Seconds*time.Second)
	return ctx
}

func (w *worker) cluster(tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListBrokers(soon())
	brokers := []string{}
	for _, broker := range found {
		brokers = append(brokers, net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port))))
	}
	return tasks.Answer{"brokers": brokers}, err
}

func (w *worker) create(task tasks.Task) (tasks.Answer, error) {
	configs := map[string]*string{}
	for name, value := range task.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	_, err := w.admin.CreateTopic(soon(), int32(task.Count), 1, configs, task.Topic)
	return nil, err
}

func (w *worker) topics(tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListTopics(soon())
	topics := map[string]int{}
	for name, topic := range found {
		topics[name] = len(topic.Partitions)
	}
	return tasks.Answer{"topics": topics}, err
}

func (w *worker) delete(task tasks.Task) (tasks.Answer, error) {
	_, err := w.admin.DeleteTopic(soon(), task.Topic)
	return nil, err
}

func (w *worker) grow(task tasks.Task) (tasks.Answer, error) {
	done, err := w.admin.UpdatePartitions(soon(), task.Count, task.Topic)
	if err == nil {
		err = done.Error()
	}
	return nil, err
}

func (w *worker) configs(task tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.DescribeTopicConfigs(soon(), task.Topic)
	configs := map[string]string{}
	for _, resource := range found {
		for _, config := range resource.Configs {
			configs[config.Key] = config.MaybeValue()
		}
	}
	return tasks.Answer{"configs": configs}, err
}

func (w *worker) alter(task tasks.Task) (tasks.Answer, error) {
	changes := []kadm.AlterConfig{}
	for name, value := range task.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	done, err := w.admin.AlterTopicConfigs(soon(), changes, task.Topic)
	if err == nil {
		err = done[0].Err
	}
	return nil, err
}

func (w *worker) trim(task tasks.Task) (tasks.Answer, error) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(task.Topic, task.Partition, task.Offset, -1)
	done, err := w.admin.DeleteRecords(soon(), offsets)
	if err == nil {
		err = done.Error()
	}
	return nil, err
}

func (w *worker) produce(task tasks.Task) (tasks.Answer, error) {
	producer, err := w.producer(task)
	if err != nil {
		return nil, err
	}
	records := []*kgo.Record{}
	for _, r := range task.Records {
		record := &kgo.Record{Topic: task.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value,
			Timestamp: time.UnixMilli(r.Timestamp)}
		for _, header := range r.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		records = append(records, record)
	}
	if err := producer.ProduceSync(soon(), records...).FirstErr(); err != nil {
		return nil, err
	}
	offsets := []int64{}
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	return tasks.Answer{"offsets": offsets}, nil
}

func (w *worker) producer(task tasks.Task) (*kgo.Client, error) {
	key := fmt.Sprint(task.Acks, task.Codec, task.Idempotent)
	if found := w.producers[key]; found != nil {
		return found, nil
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(w.bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(acks[task.Acks]),
		kgo.ProducerBatchCompression(codecs[task.Codec]),
	}
	if !task.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	made, err := kgo.NewClient(options...)
	w.producers[key] = made
	return made, err
}

func (w *worker) consume(task tasks.Task) (tasks.Answer, error) {
	start := kgo.NewOffset().AtStart()
	if task.Offset >= 0 {
		start = kgo.NewOffset().At(task.Offset)
	}
	places := map[int32]kgo.Offset{}
	for _, partition := range task.Partitions {
		places[partition] = start
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.bootstrap), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{task.Topic: places}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	seen := []tasks.Record{}
	for ctx := soon(); len(seen) < task.Count; {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return nil, errs[0].Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			headers := []tasks.Header{}
			for _, header := range r.Headers {
				headers = append(headers, tasks.Header{Name: header.Key, Value: header.Value})
			}
			seen = append(seen, tasks.Record{Partition: r.Partition, Offset: r.Offset,
				Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: headers})
		})
	}
	return tasks.Answer{"records": seen}, nil
}

func (w *worker) offsetAt(task tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListOffsetsAfterMilli(soon(), task.Timestamp, task.Topic)
	if err == nil {
		err = found.Error()
	}
	offset, _ := found.Lookup(task.Topic, task.Partition)
	return tasks.Answer{"offset": offset.Offset}, err
}

func (w *worker) commit(task tasks.Task) (tasks.Answer, error) {
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: task.Topic, Partition: task.Partition, At: task.Offset, LeaderEpoch: -1,
		Metadata: task.Note})
	return nil, w.admin.CommitAllOffsets(soon(), task.Group, offsets)
}

func (w *worker) committed(task tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.FetchOffsets(soon(), task.Group)
	offset := int64(-1)
	if kept, there := found.Lookup(task.Topic, task.Partition); there {
		offset = kept.At
	}
	return tasks.Answer{"offset": offset}, err
}

func (w *worker) groups(tasks.Task) (tasks.Answer, error) {
	found, err := w.admin.ListGroups(soon())
	return tasks.Answer{"groups": found.Groups()}, err
}

func (w *worker) forget(task tasks.Task) (tasks.Answer, error) {
	_, err := w.admin.DeleteGroup(soon(), task.Group)
	return nil, err
}
