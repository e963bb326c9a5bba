// Members by franz-go.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pykafka.test/harness/lines"
)

var assignors = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"uniform":            kgo.StickyBalancer(), // the broker's name for it
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

func main() { lines.Run(consume) }

func consume(ctx context.Context, orders lines.Orders, name string) {
	options := []kgo.Opt{
		kgo.SeedBrokers(orders.Bootstrap),
		kgo.ClientID(name),
		kgo.ConsumerGroup(orders.Group),
		kgo.ConsumeTopics(orders.Topic),
		kgo.SessionTimeout(orders.Session()),
		kgo.HeartbeatInterval(orders.Heartbeat()),
		kgo.RebalanceTimeout(10 * time.Second),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			lines.Assigned(name, given[orders.Topic])
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
			lines.Revoked(name, taken[orders.Topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			lines.Revoked(name, lost[orders.Topic])
		}),
	}
	if orders.Assignor != "" {
		options = append(options, kgo.Balancers(assignors[orders.Assignor]))
	}
	if orders.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if orders.Static {
		options = append(options, kgo.InstanceID(name))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				lines.Trouble(name, err)
			}
		})
		fetches.EachPartition(func(partition kgo.FetchTopicPartition) { report(name, partition) })
		if records := fetches.Records(); len(records) > 0 {
			commit(client, orders, name, records)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

func report(name string, partition kgo.FetchTopicPartition) {
	seen := make([]lines.Record, 0, len(partition.Records))
	for _, record := range partition.Records {
		seen = append(seen, lines.Record{Offset: record.Offset, Value: string(record.Value)})
	}
	if len(seen) > 0 {
		lines.Records(name, partition.Partition, seen)
	}
}

func commit(client *kgo.Client, orders lines.Orders, name string, records []*kgo.Record) {
	if orders.Metadata != "" {
		ctx := kgo.PreCommitFnContext(context.Background(), attach(orders.Metadata))
		commitIn(ctx, client, name, records)
		return
	}
	commitIn(context.Background(), client, name, records)
}

func commitIn(ctx context.Context, client *kgo.Client, name string, records []*kgo.Record) {
	if err := client.CommitRecords(ctx, records...); err != nil {
		lines.Trouble(name, err)
		return
	}
	positions := map[int32]int64{}
	for _, record := range records {
		positions[record.Partition] = max(positions[record.Partition], record.Offset+1)
	}
	lines.Committed(name, positions)
}
