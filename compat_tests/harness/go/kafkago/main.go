// Members by segmentio/kafka-go, through its ConsumerGroup: the part of its Reader that shows generations.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"pykafka.test/harness/lines"
)

var assignors = map[string]kafka.GroupBalancer{
	"range":      kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{},
}

func main() { lines.Run(consume) }

func consume(ctx context.Context, orders lines.Orders, name string) {
	config := kafka.ConsumerGroupConfig{
		ID:                orders.Group,
		Brokers:           []string{orders.Bootstrap},
		Dialer:            &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second},
		Topics:            []string{orders.Topic},
		SessionTimeout:    orders.Session(),
		HeartbeatInterval: orders.Heartbeat(),
		RebalanceTimeout:  10 * time.Second,
		JoinGroupBackoff:  200 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	}
	if orders.Assignor != "" {
		config.GroupBalancers = []kafka.GroupBalancer{assignors[orders.Assignor]}
	}
	group, err := kafka.NewConsumerGroup(config)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				lines.Trouble(name, err)
			}
			continue
		}
		take(generation, orders, name)
	}
	if err := group.Close(); err != nil {
		lines.Trouble(name, err)
	}
}

// take consumes what the generation gives the member, until the generation ends.
func take(generation *kafka.Generation, orders lines.Orders, name string) {
	given := generation.Assignments[orders.Topic]
	partitions := make([]int32, 0, len(given))
	for _, place := range given {
		partitions = append(partitions, int32(place.ID))
	}
	lines.Assigned(name, partitions)
	running := make(chan struct{}, len(given))
	for _, place := range given {
		generation.Start(func(ctx context.Context) {
			defer func() { running <- struct{}{} }()
			read(ctx, generation, orders, name, place)
		})
	}
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		for range given {
			<-running
		}
		lines.Revoked(name, partitions)
	})
}

func read(
	ctx context.Context, generation *kafka.Generation, orders lines.Orders, name string,
	place kafka.PartitionAssignment,
) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{orders.Bootstrap},
		Topic:     orders.Topic,
		Partition: place.ID,
		MaxWait:   100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(place.Offset); err != nil {
		lines.Trouble(name, err)
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, kafka.ErrGenerationEnded) {
				lines.Trouble(name, err)
			}
			return
		}
		partition := int32(message.Partition)
		lines.Records(name, partition, []lines.Record{{Offset: message.Offset, Value: string(message.Value)}})
		next := map[string]map[int]int64{orders.Topic: {message.Partition: message.Offset + 1}}
		if err := generation.CommitOffsets(next); err != nil {
			lines.Trouble(name, err)
			continue
		}
		lines.Committed(name, map[int32]int64{partition: message.Offset + 1})
	}
}
