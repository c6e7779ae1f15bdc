// Package kafka exports to a topic of Kafka: a record for each row, whose key is the instance, so that the rows of one are
// in one partition and in their order. The producer is idempotent, and a row counts when all replicas in sync have it; when
// one fails, so do those after it in its partition.
package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

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

// The schemes of addresses; the second one's brokers speak TLS.
const (
	Scheme    = "kafka"
	SchemeTLS = "kafka+tls"
)

// Options configures a Topic. To is required.
type Options struct {
	To             string         // kafka://HOST:PORT,HOST:PORT/TOPIC, or kafka+tls://
	User, Password string         // of SASL; empty: nobody signs in
	Authorities    *x509.CertPool // sign the certificates of brokers; nil: those of the system
}

// New makes the client; it connects to nothing. An error is a fault of the options, and does not show the address.
func New(o Options) (*Topic, error) {
	scheme, rest, _ := strings.Cut(o.To, "://")
	brokers, topic, _ := strings.Cut(rest, "/")
	if scheme != Scheme && scheme != SchemeTLS || brokers == "" || topic == "" || strings.Contains(brokers, "@") || strings.ContainsAny(topic, "/?#@ ") {
		return nil, errors.New("the address must be like kafka+tls://one:9093,two:9093/topic, without a user")
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(topic), kgo.ClientID("troupe"),
		kgo.RecordDeliveryTimeout(writeMax), kgo.ProducerBatchMaxBytes(recordBytesMax), kgo.AllowAutoTopicCreation(),
	}
	if scheme == SchemeTLS {
		options = append(options, kgo.DialTLSConfig(&tls.Config{RootCAs: o.Authorities, MinVersion: tls.VersionTLS12}))
	}
	if o.User != "" {
		// The first mechanism that the brokers know is used.
		as := scram.Auth{User: o.User, Pass: o.Password}
		mechanisms := []sasl.Mechanism{as.AsSha512Mechanism(), as.AsSha256Mechanism()}
		if scheme == SchemeTLS { // it shows the password
			mechanisms = append(mechanisms, plain.Auth{User: o.User, Pass: o.Password}.AsMechanism())
		}
		options = append(options, kgo.SASL(mechanisms...))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	return &Topic{client, o.To}, nil
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
	if err := t.client.Ping(ctx); err != nil { // the producer would only say, after a minute, that time is up
		return err
	}
	records := make([]*kgo.Record, len(rows))
	for i, row := range rows {
		records[i] = &kgo.Record{Key: []byte(row.Instance), Value: row.Text, Timestamp: row.At}
	}
	return t.client.ProduceSync(ctx, records...).FirstErr()
}
