// Package kafka exports to a topic of Kafka: a record for each row, whose key is the instance, so that the rows of one are
// in one partition and in their order. The producer is idempotent, and a row counts when all replicas in sync have it; when
// one fails, so do those after it in its partition.
package kafka

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"troupe/actors/export"
)

const (
	batchBytes = 1 << 20
	batchFor   = time.Second
	writeMax   = time.Minute // how long a batch may take
	// recordBytesMax is more than a row can have: 16 KiB of data, and its states.
	recordBytesMax = 8 << 20
)

// Topic is the target.
type Topic struct {
	client *kgo.Client
	name   string
}

// New makes the client of kafka://HOST:PORT,HOST:PORT/TOPIC; it connects to nothing. An error is a fault of the address,
// and does not show it.
func New(to string) (*Topic, error) {
	rest, ok := strings.CutPrefix(to, "kafka://")
	brokers, topic, _ := strings.Cut(rest, "/")
	if !ok || brokers == "" || topic == "" || strings.Contains(brokers, "@") || strings.ContainsAny(topic, "/?#@ ") {
		return nil, errors.New("the address must be like kafka://one:9092,two:9092/topic, without a user")
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(topic), kgo.ClientID("troupe"),
		kgo.RecordDeliveryTimeout(writeMax), kgo.ProducerBatchMaxBytes(recordBytesMax), kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		return nil, err
	}
	return &Topic{client, to}, nil
}

// Gathers implements export.Target.
func (*Topic) Gathers() export.Gathers { return export.Gathers{Bytes: batchBytes, For: batchFor} }

// String implements export.Target.
func (t *Topic) String() string { return t.name }

// Close implements export.Target.
func (t *Topic) Close() error {
	t.client.Close()
	return nil
}

// Write implements export.Target.
func (t *Topic) Write(ctx context.Context, rows []export.Row) error {
	ctx, cancel := context.WithTimeout(ctx, writeMax)
	defer cancel()
	records := make([]*kgo.Record, len(rows))
	for i, row := range rows {
		records[i] = &kgo.Record{Key: []byte(row.Instance), Value: row.Text, Timestamp: row.At}
	}
	return t.client.ProduceSync(ctx, records...).FirstErr()
}
