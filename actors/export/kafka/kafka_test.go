package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"troupe/actors/export"
)

// TestRowsOfAnInstanceKeepTheirOrder: all of them in one partition, also when the brokers have refused some at first.
func TestRowsOfAnInstanceKeepTheirOrder(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(4, "rows"))
	require.NoError(t, err)
	defer cluster.Close()
	refused := 0
	cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if refused++; refused > 2 {
			return nil, nil, false
		}
		answer := r.ResponseKind().(*kmsg.ProduceResponse)      //nolint:forcetypeassert // the key is that of it
		for _, topic := range r.(*kmsg.ProduceRequest).Topics { //nolint:forcetypeassert // likewise
			of := kmsg.ProduceResponseTopic{Topic: topic.Topic, TopicID: topic.TopicID}
			for _, p := range topic.Partitions {
				of.Partitions = append(of.Partitions, kmsg.ProduceResponseTopicPartition{Partition: p.Partition, ErrorCode: kerr.NotLeaderForPartition.Code})
			}
			answer.Topics = append(answer.Topics, of)
		}
		return answer, nil, true
	})
	address := "kafka://" + strings.Join(cluster.ListenAddrs(), ",") + "/rows"
	topic, err := New(Options{To: address})
	require.NoError(t, err)
	assert.Equal(t, address, topic.String())
	const instances, entries = 5, 40
	for begin := 0; begin < entries; begin += 10 {
		var rows []export.Row
		for n := range 10 * instances {
			id := fmt.Sprint("i", n%instances)
			rows = append(rows, export.Row{Workflow: "w", Instance: id, At: time.Now(), Text: fmt.Appendf(nil, `{"%s":%d}`, id, begin+n/instances)})
		}
		require.NoError(t, topic.Write(t.Context(), rows))
	}
	require.NoError(t, topic.Close())
	assert.Positive(t, refused)

	reader, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.ConsumeTopics("rows"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	defer reader.Close()
	next, partition := map[string]int{}, map[string]int32{}
	for n := 0; n < instances*entries; {
		got := reader.PollFetches(t.Context())
		require.NoError(t, got.Err())
		got.EachRecord(func(r *kgo.Record) {
			id := string(r.Key)
			assert.Equal(t, fmt.Sprintf(`{"%s":%d}`, id, next[id]), string(r.Value))
			if next[id] == 0 {
				partition[id] = r.Partition
			}
			assert.Equal(t, partition[id], r.Partition)
			next[id]++
			n++
		})
	}
	for _, wrong := range []string{"kafka://", "kafka://one:9092", "kafka://one:9092/", "kafka://a:secret@one:9092/t", "kafka://one:9092/a/b", "kafkas://one:9092/t"} {
		_, err := New(Options{To: wrong})
		assert.True(t, err != nil && !strings.Contains(err.Error(), "secret"), wrong)
	}
}

// TestSignIn: with each mechanism over TLS; without it the password is never shown, and nothing is without the right one.
func TestSignIn(t *testing.T) {
	keys := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	defer keys.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(keys.Certificate())
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		for _, scheme := range []string{Scheme, SchemeTLS} {
			options := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(1, "rows"), kfake.EnableSASL(), kfake.Superuser(mechanism, "ann", "hidden")}
			if scheme == SchemeTLS {
				options = append(options, kfake.TLS(&tls.Config{Certificates: keys.TLS.Certificates}))
			}
			cluster, err := kfake.NewCluster(options...)
			require.NoError(t, err)
			cluster.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				answer := r.ResponseKind().(*kmsg.SASLHandshakeResponse) //nolint:forcetypeassert // the key is that of it
				answer.ErrorCode, answer.SupportedMechanisms = kerr.UnsupportedSaslMechanism.Code, []string{mechanism}
				return answer, nil, r.(*kmsg.SASLHandshakeRequest).Mechanism != mechanism //nolint:forcetypeassert // likewise
			})
			o := Options{To: scheme + "://" + cluster.ListenAddrs()[0] + "/rows", User: "ann", Password: "hidden", Authorities: trusted}
			write := func(o Options) error {
				topic, err := New(o)
				require.NoError(t, err)
				defer func() { assert.NoError(t, topic.Close()) }()
				return topic.Write(t.Context(), []export.Row{{Instance: "i", Text: []byte("{}")}})
			}
			if scheme == Scheme && mechanism == "PLAIN" {
				assert.ErrorContains(t, write(o), "SASL")
			} else {
				assert.NoError(t, write(o), "%s %s", scheme, mechanism)
				o.Password = "wrong"
				err := write(o)
				assert.True(t, err != nil && !strings.Contains(err.Error(), "wrong"), "%s %s: %v", scheme, mechanism, err)
				o.Authorities, o.Password = x509.NewCertPool(), "hidden"
				assert.Equal(t, scheme == Scheme, write(o) == nil, "a certificate of nobody")
			}
			cluster.Close()
		}
	}
}
