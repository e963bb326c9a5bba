// Members by sarama's ConsumerGroup.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"
	"pykafka.test/harness/lines"
)

var assignors = map[string]sarama.BalanceStrategy{
	"range":      sarama.NewBalanceStrategyRange(),
	"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	"sticky":     sarama.NewBalanceStrategySticky(),
}

func main() { lines.Run(consume) }

func consume(ctx context.Context, orders lines.Orders, name string) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = name
	config.Consumer.Group.Session.Timeout = orders.Session()
	config.Consumer.Group.Heartbeat.Interval = orders.Heartbeat()
	config.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	if orders.Assignor != "" {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{assignors[orders.Assignor]}
	}
	if orders.Static {
		config.Consumer.Group.InstanceId = name
	}
	group, err := sarama.NewConsumerGroup([]string{orders.Bootstrap}, orders.Group, config)
	if err != nil {
		panic(err)
	}
	go func() {
		for err := range group.Errors() {
			lines.Trouble(name, err)
		}
	}()
	handler := &member{name: name, topic: orders.Topic, metadata: orders.Metadata}
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{orders.Topic}, handler)
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) && ctx.Err() == nil {
			lines.Trouble(name, err)
		}
	}
	if err := group.Close(); err != nil {
		lines.Trouble(name, err)
	}
}

type member struct{ name, topic, metadata string }

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	lines.Assigned(m.name, session.Claims()[m.topic])
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	lines.Revoked(m.name, session.Claims()[m.topic])
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.take(session, claim, message)
		}
	}
}

// take reports the message and all that wait behind it, then commits once for all of them.
func (m *member) take(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, message *sarama.ConsumerMessage,
) {
	seen := []lines.Record{}
	for more := true; more; {
		seen = append(seen, lines.Record{Offset: message.Offset, Value: string(message.Value)})
		session.MarkMessage(message, m.metadata)
		select {
		case next, open := <-claim.Messages():
			message, more = next, open
		default:
			more = false
		}
	}
	lines.Records(m.name, claim.Partition(), seen)
	session.Commit()
}
