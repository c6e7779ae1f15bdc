package byitself

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"troupe/bench/load"
	"troupe/gateway/client"
)

const (
	batchItems = 1000
	batches    = 4 // at a time
)

// many sends items in batches, and returns the ids of their instances in order.
func (s *server) many(ctx context.Context, count int, item func(i int) string) ([]string, error) {
	ids := make([]string, count)
	return ids, load.Each(ctx, batches, (count+batchItems-1)/batchItems, func(ctx context.Context, i int) error {
		first := i * batchItems
		return s.batch(ctx, ids[first:min(first+batchItems, count)], first, item)
	})
}

func (s *server) batch(ctx context.Context, ids []string, first int, item func(i int) string) error {
	r := client.BatchRequest{Key: client.NewKey()}
	for i := range ids {
		r.Items = append(r.Items, json.RawMessage(item(first+i)))
	}
	for {
		results, err := s.Batch(ctx, r)
		if err != nil {
			return err
		}
		again := false
		for i := range results {
			switch results[i].Status {
			case 200:
				ids[i] = results[i].InstanceID
			case 429, 503:
				again = true
			default:
				return fmt.Errorf("item %d: %w", first+i, results[i].Err())
			}
		}
		if !again {
			return nil
		}
		if !load.Sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// waiting is an item that makes an instance which waits for a time.
func waiting(due time.Time) string {
	return fmt.Sprintf(`{"workflowId":"waiting","data":{"svcPublic":{"due":%q}}}`, due.UTC().Format(time.RFC3339Nano))
}

// event is an item that sends one.
func event(workflow, id, name string, n int) string {
	return fmt.Sprintf(`{"workflowId":%q,"instanceId":%q,"event":{"name":%q,"data":{"n":%d}}}`, workflow, id, name, n)
}
