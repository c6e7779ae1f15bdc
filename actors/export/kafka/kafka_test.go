package kafka

import (
	"fmt"
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
	topic, err := New(address)
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
	for _, wrong := range []string{"kafka://", "kafka://one:9092", "kafka://one:9092/", "kafka://a:secret@one:9092/t", "kafka://one:9092/a/b"} {
		_, err := New(wrong)
		assert.True(t, err != nil && !strings.Contains(err.Error(), "secret"), wrong)
	}
}
