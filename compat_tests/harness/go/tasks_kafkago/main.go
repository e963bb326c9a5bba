// The scenarios' words in segmentio's kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"pykafka.test/harness/tasks"
)

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

var acks = map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll}

// transport asks for metadata often: the topics are new.
var transport = &kafka.Transport{MetadataTTL: 100 * time.Millisecond}

type worker struct {
	bootstrap string
	client    *kafka.Client
	writers   map[string]*writer
}

// writer is a Writer that remembers the offsets of its last records: they are told to a callback only.
type writer struct {
	kafka.Writer
	lock   sync.Mutex
	placed map[int]int64
}

func main() {
	client := &kafka.Client{Addr: kafka.TCP(os.Args[1]), Timeout: tasks.Seconds * time.Second, Transport: transport}
	w := &worker{os.Args[1], client, map[string]*writer{}}
	tasks.Serve(map[string]func(tasks.Task) (tasks.Answer, error){
		"cluster": w.cluster, "create": w.create, "topics": w.topics, "delete": w.delete, "grow": w.grow,
		"configs": w.configs, "alter": w.alter, "produce": w.produce, "consume": w.consume,
		"offset_at": w.offsetAt, "commit": w.commit, "committed": w.committed, "groups": w.groups, "forget": w.forget,
	})
}

func soon() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), tasks.Seconds*time.Second)
	return ctx
}

// first is the error of the call, else the first that an answer carries.
func first(err error, more ...error) error { return errors.Join(append([]error{err}, more...)...) }

func (w *worker) cluster(tasks.Task) (tasks.Answer, error) {
	found, err := w.client.Metadata(soon(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	brokers := []string{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, net.JoinHostPort(broker.Host, strconv.Itoa(broker.Port)))
	}
	return tasks.Answer{"brokers": brokers}, nil
}

func (w *worker) create(task tasks.Task) (tasks.Answer, error) {
	wanted := kafka.TopicConfig{Topic: task.Topic, NumPartitions: task.Count, ReplicationFactor: 1}
	for name, value := range task.Configs {
		wanted.ConfigEntries = append(wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	done, err := w.client.CreateTopics(soon(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}})
	if err != nil {
		return nil, err
	}
	return nil, done.Errors[task.Topic]
}

func (w *worker) topics(tasks.Task) (tasks.Answer, error) {
	found, err := w.client.Metadata(soon(), &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	topics := map[string]int{}
	for _, topic := range found.Topics {
		topics[topic.Name] = len(topic.Partitions)
	}
	return tasks.Answer{"topics": topics}, nil
}

func (w *worker) delete(task tasks.Task) (tasks.Answer, error) {
	done, err := w.client.DeleteTopics(soon(), &kafka.DeleteTopicsRequest{Topics: []string{task.Topic}})
	if err != nil {
		return nil, err
	}
	return nil, done.Errors[task.Topic]
}

func (w *worker) grow(task tasks.Task) (tasks.Answer, error) {
	wanted := kafka.TopicPartitionsConfig{Name: task.Topic, Count: int32(task.Count)}
	done, err := w.client.CreatePartitions(soon(),
		&kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{wanted}})
	if err != nil {
		return nil, err
	}
	return nil, done.Errors[task.Topic]
}

func (w *worker) configs(task tasks.Task) (tasks.Answer, error) {
	which := kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: task.Topic}
	found, err := w.client.DescribeConfigs(soon(),
		&kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{which}})
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, entry := range found.Resources[0].ConfigEntries {
		configs[entry.ConfigName] = entry.ConfigValue
	}
	return tasks.Answer{"configs": configs}, found.Resources[0].Error
}

func (w *worker) alter(task tasks.Task) (tasks.Answer, error) {
	change := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: task.Topic}
	for name, value := range task.Configs {
		change.Configs = append(change.Configs, kafka.IncrementalAlterConfigsRequestConfig{
			Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet})
	}
	done, err := w.client.IncrementalAlterConfigs(soon(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{change}})
	if err != nil {
		return nil, err
	}
	return nil, done.Resources[0].Error
}

func early(err error) bool {
	return errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, protocol.ErrNoLeader)
}

func (w *worker) produce(task tasks.Task) (tasks.Answer, error) {
	messages := []kafka.Message{}
	for n, r := range task.Records {
		message := kafka.Message{Topic: task.Topic, Partition: int(r.Partition), Key: r.Key, Value: r.Value,
			Time: time.UnixMilli(r.Timestamp), WriterData: n}
		for _, header := range r.Headers {
			message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
		messages = append(messages, message)
	}
	writer := w.writer(task)
	err := writer.WriteMessages(soon(), messages...)
	// As its manual advises: a topic may be too new for the writer to know it, or a broker too new to lead it.
	for patience := 50; patience > 0 && early(err); patience-- {
		time.Sleep(100 * time.Millisecond)
		err = writer.WriteMessages(soon(), messages...)
	}
	if err != nil {
		var many kafka.WriteErrors
		if errors.As(err, &many) {
			return nil, first(nil, many...)
		}
		return nil, err
	}
	writer.lock.Lock()
	defer writer.lock.Unlock()
	offsets := []int64{}
	for n := range messages {
		offsets = append(offsets, writer.placed[n])
	}
	return tasks.Answer{"offsets": offsets}, nil
}

// manual writes each message where it says.
type manual struct{}

func (manual) Balance(message kafka.Message, _ ...int) int { return message.Partition }

func (w *writer) complete(messages []kafka.Message, _ error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, message := range messages {
		w.placed[message.WriterData.(int)] = message.Offset
	}
}

func (w *worker) writer(task tasks.Task) *writer {
	key := fmt.Sprint(task.Acks, task.Codec)
	if w.writers[key] == nil {
		made := &writer{placed: map[int]int64{}}
		made.Writer = kafka.Writer{Addr: kafka.TCP(w.bootstrap), Balancer: manual{}, RequiredAcks: acks[task.Acks],
			Compression: codecs[task.Codec], BatchTimeout: 20 * time.Millisecond, BatchBytes: 8 << 20,
			MaxAttempts: 30, Completion: made.complete, Transport: transport}
		w.writers[key] = made
	}
	return w.writers[key]
}

// atOnce is how many partitions are read side by side: each reader has connections of its own.
const atOnce = 50

func (w *worker) consume(task tasks.Task) (tasks.Answer, error) {
	if len(task.Partitions) <= atOnce {
		seen, err := w.read(task)
		return tasks.Answer{"records": seen}, err
	}
	all := []tasks.Record{}
	for from := 0; from < len(task.Partitions); from += atOnce {
		part := task
		part.Partitions = task.Partitions[from:min(from+atOnce, len(task.Partitions))]
		count, err := w.stored(part)
		if err != nil {
			return nil, err
		}
		part.Count = count
		seen, err := w.read(part)
		if err != nil {
			return nil, err
		}
		all = append(all, seen...)
	}
	return tasks.Answer{"records": all}, nil
}

// stored is how many records the partitions hold, from where the task begins.
func (w *worker) stored(task tasks.Task) (int, error) {
	asked := []kafka.OffsetRequest{}
	for _, partition := range task.Partitions {
		asked = append(asked, kafka.LastOffsetOf(int(partition)))
	}
	found, err := w.client.ListOffsets(soon(),
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{task.Topic: asked}})
	if err != nil {
		return 0, err
	}
	count := 0
	for _, partition := range found.Topics[task.Topic] {
		count += int(partition.LastOffset - max(task.Offset, 0))
	}
	return count, nil
}

func (w *worker) read(task tasks.Task) ([]tasks.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tasks.Seconds*time.Second)
	defer cancel()
	start := task.Offset
	if start < 0 {
		start = kafka.FirstOffset
	}
	arrived, failed := make(chan kafka.Message), make(chan error)
	for _, partition := range task.Partitions {
		reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{w.bootstrap}, Topic: task.Topic,
			Partition: int(partition), MaxWait: 100 * time.Millisecond, MaxBytes: 8 << 20})
		defer reader.Close()
		if err := reader.SetOffset(start); err != nil {
			return nil, err
		}
		go pass(ctx, reader, arrived, failed)
	}
	seen := []tasks.Record{}
	for len(seen) < task.Count {
		select {
		case m := <-arrived:
			headers := []tasks.Header{}
			for _, header := range m.Headers {
				headers = append(headers, tasks.Header{Name: header.Key, Value: header.Value})
			}
			seen = append(seen, tasks.Record{Partition: int32(m.Partition), Offset: m.Offset,
				Timestamp: m.Time.UnixMilli(), Key: m.Key, Value: m.Value, Headers: headers})
		case err := <-failed:
			return nil, err
		}
	}
	return seen, nil
}

func pass(ctx context.Context, reader *kafka.Reader, arrived chan<- kafka.Message, failed chan<- error) {
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
			return
		}
		select {
		case arrived <- message:
		case <-ctx.Done():
			return
		}
	}
}

func (w *worker) offsetAt(task tasks.Task) (tasks.Answer, error) {
	when := kafka.TimeOffsetOf(int(task.Partition), time.UnixMilli(task.Timestamp))
	found, err := w.client.ListOffsets(soon(),
		&kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{task.Topic: {when}}})
	if err != nil {
		return nil, err
	}
	for _, partition := range found.Topics[task.Topic] {
		for offset := range partition.Offsets {
			return tasks.Answer{"offset": offset}, partition.Error
		}
	}
	return tasks.Answer{"offset": -1}, nil
}

func (w *worker) commit(task tasks.Task) (tasks.Answer, error) {
	place := kafka.OffsetCommit{Partition: int(task.Partition), Offset: task.Offset, Metadata: task.Note}
	done, err := w.client.OffsetCommit(soon(), &kafka.OffsetCommitRequest{GroupID: task.Group, GenerationID: -1,
		Topics: map[string][]kafka.OffsetCommit{task.Topic: {place}}})
	if err != nil {
		return nil, err
	}
	return nil, done.Topics[task.Topic][0].Error
}

func (w *worker) committed(task tasks.Task) (tasks.Answer, error) {
	found, err := w.client.OffsetFetch(soon(), &kafka.OffsetFetchRequest{GroupID: task.Group,
		Topics: map[string][]int{task.Topic: {int(task.Partition)}}})
	if err != nil {
		return nil, err
	}
	return tasks.Answer{"offset": found.Topics[task.Topic][0].CommittedOffset}, found.Error
}

func (w *worker) groups(tasks.Task) (tasks.Answer, error) {
	found, err := w.client.ListGroups(soon(), &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	groups := []string{}
	for _, group := range found.Groups {
		groups = append(groups, group.GroupID)
	}
	return tasks.Answer{"groups": groups}, found.Error
}

func (w *worker) forget(task tasks.Task) (tasks.Answer, error) {
	done, err := w.client.DeleteGroups(soon(), &kafka.DeleteGroupsRequest{GroupIDs: []string{task.Group}})
	if err != nil {
		return nil, err
	}
	return nil, done.Errors[task.Group]
}
