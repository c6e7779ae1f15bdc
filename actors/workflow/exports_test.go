package workflow_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/changefeed"
	"troupe/actors/export"
	"troupe/actors/export/file"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/clocktest"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// sink is a target that fails in all ways: it takes nothing, a part, or everything and does not say so; and it may be slow.
type sink struct {
	mu     sync.Mutex
	r      *rand.Rand
	seen   map[string]uint64   // by instance, the last entry in order
	rows   map[string][]string // by instance, those in order, each once
	gaps   []string
	down   bool
	files  *file.Files  // has what the sink takes, until it is read back; nil: the sink has it
	again  int          // rows that came once more
	most   int          // of a batch
	failed []export.Row // of the last batch, if it was not confirmed
	steady bool         // no shard moves, so that such a batch comes again as it was
	faults []string
}

func newSink(seed uint64) *sink {
	return &sink{r: rand.New(rand.NewPCG(seed, 38)), seen: map[string]uint64{}, rows: map[string][]string{}}
}

func (*sink) Gathers() export.Gathers {
	return export.Gathers{Bytes: 2 << 10, For: 300 * time.Millisecond}
}
func (*sink) String() string { return "sink" }
func (*sink) Close() error   { return nil }

var errSink = errors.New("the sink has failed")

func (s *sink) Write(ctx context.Context, rows []export.Row) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(a, b export.Row) bool { return a.Text.String() == b.Text.String() }
	if s.steady && s.failed != nil && !slices.EqualFunc(s.failed, rows, same) {
		s.faults = append(s.faults, fmt.Sprintf("%d rows come again as %d", len(s.failed), len(rows)))
	}
	s.failed = nil
	defer func() {
		if err != nil {
			s.failed = slices.Clone(rows)
		}
	}()
	s.most = max(s.most, len(rows))
	if s.down {
		return errSink
	}
	end := len(rows)
	fate := s.r.IntN(6)
	if fate == 0 {
		end = s.r.IntN(len(rows))
	}
	if s.files != nil && end > 0 {
		if err := s.files.Write(ctx, rows[:end]); err != nil {
			return err
		}
	} else {
		s.takeAll(rows[:end])
	}
	if fate < 2 {
		return errSink
	}
	return nil
}

func (s *sink) takeAll(rows []export.Row) {
	for _, row := range rows {
		s.take(row)
	}
}

// shelf has files. Like a process that is killed, it may end before a file is there, or after it is there and before anybody knows.
type shelf struct {
	r     *rand.Rand
	files map[string][]byte
}

func (p *shelf) Create(_ context.Context, name string, text []byte) error {
	fate := p.r.IntN(5)
	if fate == 0 {
		return errSink
	}
	if _, has := p.files[name]; has {
		return fs.ErrExist
	}
	p.files[name] = text
	if fate == 1 {
		return errSink
	}
	return nil
}

func (p *shelf) Names(_ context.Context, folder string) (names []string, err error) {
	for name := range p.files {
		if of, rest, _ := strings.Cut(name, "/"); of == folder {
			names = append(names, rest)
		}
	}
	return names, nil
}
func (*shelf) String() string { return "shelf" }
func (*shelf) Close() error   { return nil }

// rows has those of all files of Parquet, in the order of their names.
func (p *shelf) rows(t *testing.T) (rows []export.Row) {
	type columns struct {
		WorkflowID string    `parquet:"workflowId"`
		InstanceID string    `parquet:"instanceId"`
		Sequence   int64     `parquet:"sequence"`
		Event      string    `parquet:"event"`
		Data       string    `parquet:"data,optional"`
		User       string    `parquet:"user"`
		TS         time.Time `parquet:"ts,timestamp(millisecond)"`
		States     string    `parquet:"states"`
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		assert.Regexp(t, `^2026-01-01/0\d-\d{3}\.parquet$`, name)
		read, err := parquet.Read[columns](bytes.NewReader(p.files[name]), int64(len(p.files[name])))
		require.NoError(t, err)
		for _, c := range read {
			rows = append(rows, export.Row{Text: fmt.Appendf(nil, `{"workflowId":%q,"instanceId":%q,"sequence":%d,"event":%q,"data":%s,"user":%q,"ts":%q,"states":%s}`,
				c.WorkflowID, c.InstanceID, c.Sequence, c.Event, cmp.Or(c.Data, "null"), c.User, c.TS.UTC().Format(statemachine.TimeLayout), c.States)})
		}
	}
	return rows
}

func (s *sink) take(row export.Row) {
	var of struct {
		InstanceID string
		Sequence   uint64
		Event      string
	}
	if err := json.Unmarshal(row.Text, &of); err != nil {
		s.faults = append(s.faults, err.Error())
	}
	switch seen := s.seen[of.InstanceID]; {
	case of.Event == export.GapEvent:
		s.gaps = append(s.gaps, row.Text.String())
	case of.Sequence == seen+1 || len(s.gaps) > 0 && of.Sequence > seen:
		s.seen[of.InstanceID] = of.Sequence
		s.rows[of.InstanceID] = append(s.rows[of.InstanceID], row.Text.String())
	case of.Sequence > seen:
		s.faults = append(s.faults, fmt.Sprintf("%s: entry %d comes behind %d", of.InstanceID, of.Sequence, seen))
	case len(s.gaps) == 0 && s.rows[of.InstanceID][of.Sequence-1] != row.Text.String():
		s.faults = append(s.faults, fmt.Sprintf("%s: another entry %d", of.InstanceID, of.Sequence))
	default:
		s.again++
	}
}

func (s *sink) fail(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (h *harness) export(to *sink, workflows ...string) *export.Service {
	to.failed = nil
	return export.Start(export.Options{
		Store: h.Store, Changes: h.Changes, Log: zerolog.New(&h.Log), Exports: []export.Export{{Name: "lake", Workflows: workflows, Target: to}},
	})
}

// history has the rows of an instance as its history has them.
func (h *harness) history(id string) (rows []string) {
	page, err := h.History(&message.History{Caller: boss, WorkflowID: "stock", InstanceID: id, Limit: 1000, WithData: true})
	h.Must(err)
	var entries []struct {
		User, TransitionEvent, TS string
		EndState                  []string
		Data                      json.RawMessage
	}
	h.Must(json.Unmarshal([]byte("["+string(page.Entries)+"]"), &entries))
	for n, e := range entries {
		if e.Data == nil {
			e.Data = json.RawMessage("null")
		}
		rows = append(rows, fmt.Sprintf(`{"workflowId":"stock","instanceId":%q,"sequence":%d,"event":%q,"data":%s,"user":%q,"ts":%q,"states":[{"stateMachineId":"main","nodeId":%q},{"stateMachineId":"side","nodeId":%q}]}`,
			id, n+1, e.TransitionEvent, e.Data, e.User, e.TS, e.EndState[0], e.EndState[1]))
	}
	return rows
}

// TestAnExportIsTheHistories holds persistence/PROMISES.md, "P34": over restarts and power failures amid events, with a target that
// fails in all ways, it has what the histories have, and nothing that a power failure has taken back. So do files of Parquet, which
// are all readable.
func TestAnExportIsTheHistories(t *testing.T) {
	t.Run("rows", func(t *testing.T) { anExportIsTheHistories(t, nil) })
	t.Run("parquet", func(t *testing.T) {
		anExportIsTheHistories(t, &shelf{rand.New(rand.NewPCG(2, 38)), map[string][]byte{}})
	})
}

func anExportIsTheHistories(t *testing.T, on *shelf) {
	const instances, rounds, each = 6, 6, 40
	to, histories := newSink(1), map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		disk := storetest.NewDisk()
		to.steady = true
		files := func() {
			if on != nil {
				to.files = file.New(on, file.Parquet)
			}
		}
		files()
		h := startOn(t, disk, workflow.Options{})
		h.Publish(leave, order, stock("stock", 1))
		r := rand.New(rand.NewPCG(38, 1))
		var ids []string
		for range instances {
			ids = append(ids, h.Make(boss, "stock", ""))
		}
		h.Make(boss, "order", "") // of no interest
		s := h.export(to, "stock")
		for round := range rounds {
			for n := range each {
				h.MustSend(boss, "stock", ids[r.IntN(instances)], "set", fmt.Sprintf(`{"a":%d}`, n))
				clocktest.Advance(time.Duration(r.IntN(100)) * time.Millisecond)
			}
			if round%2 == 0 {
				to.fail(true) // NB: it takes nothing that the disk as it is now does not have
				h.Disk = disk.AfterCrash()
				disk = h.Disk
			}
			h.Must(s.Stop(t.Context()))
			h.Restart()
			to.fail(false)
			files()
			s = h.export(to, "stock")
		}
		clocktest.Advance(5 * time.Minute) // the longest pause is one minute
		for _, id := range ids {
			histories[id] = h.history(id)
		}
		list, err := s.Statuses(t.Context())
		h.Must(err)
		require.Len(t, list, 1)
		assert.True(t, list[0].LagSeconds == 0 && list[0].Error == "" && s.Ready() == nil, "%+v", list[0])
		h.Must(s.Stop(t.Context()))
		h.End()
	})
	if on != nil { // NB: outside of the bubble, since the library keeps decoders for the next run
		to.takeAll(on.rows(t))
	}
	assert.Empty(t, to.faults)
	assert.Equal(t, histories, to.rows)
	total := 0
	for _, rows := range to.rows {
		total += len(rows)
	}
	assert.True(t, total >= instances+rounds*each && to.again > 0, "%d rows, %d again", total, to.again)
}

// TestASlowTargetHoldsUpNobody: what waits is bounded, it is shown, and events go on.
func TestASlowTargetHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, to := startFeed(t), newSink(2)
		s := h.export(to)
		id := h.Make(boss, "stock", "")
		to.fail(true)
		for range 2000 {
			h.MustSend(boss, "stock", id, "set", "")
		}
		clocktest.Advance(10 * time.Minute)
		list, err := s.Statuses(t.Context())
		h.Must(err)
		assert.True(t, list[0].Error == errSink.Error() && s.Metrics()[0].Failures > 8, "%+v", list[0])
		require.ErrorContains(t, s.Ready(), "the export lake fails")
		assert.Equal(t, 1, h.Log.Count("an export fails"), "each failure is logged")
		to.fail(false)
		clocktest.Advance(10 * time.Minute)
		assert.Equal(t, uint64(2001), to.seen[id])
		assert.True(t, s.Ready() == nil && to.most <= 1010, "%d rows in a batch: %v", to.most, s.Ready())
		h.Must(s.Stop(t.Context()))
		h.End()
	})
}

// TestAnExportOfATrimmedFeedTellsOfTheGap, and goes on behind it.
func TestAnExportOfATrimmedFeedTellsOfTheGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, to := startFeed(t), newSink(3)
		id := h.Make(boss, "stock", "")
		s := h.export(to)
		clocktest.Advance(time.Minute)
		h.Must(s.Stop(t.Context()))
		for range 300 {
			h.MustSend(boss, "stock", id, "set", "")
		}
		h.service(changefeed.Options{KeptFor: 1000 * time.Hour, RowsMax: 100}).Trim()
		s = h.export(to)
		clocktest.Advance(time.Minute)
		h.MustSend(boss, "stock", id, "set", "")
		clocktest.Advance(time.Minute)
		assert.Len(t, to.gaps[:1], 1)
		assert.Equal(t, 101, len(to.rows[id])-1, "entries behind the gap")
		assert.Equal(t, uint64(302), to.seen[id])
		assert.True(t, s.Metrics()[0].Gaps == 1 && h.Log.Count("no longer has entries that were not exported") == 1, "%+v", s.Metrics())
		h.Must(s.Stop(t.Context()))
		h.End()
	})
}

// TestAnExportGoesOnWhereAShardIsLed: while nodes lose power and links and lead one after the other, the target of all of them gets the
// histories.
func TestAnExportGoesOnWhereAShardIsLed(t *testing.T) {
	rounds := rounds(2, 4, 8)
	for seed := range *seeds {
		synctest.Test(t, func(t *testing.T) {
			to := newSink(10 + seed)
			var services sync.Map
			c := &cluster{t: t}
			c.served = func(n *clusterNode) {
				s := export.Start(export.Options{
					Store: n.Store, Changes: n.router.Changes, Fanout: n.router.Fanout, Log: zerolog.Nop(),
					Exports: []export.Export{{Name: "lake", Workflows: []string{"stock"}, Target: to}},
				})
				services.Store(n, s)
				n.stopFollowing = func() { c.must(s.Stop(context.Background())) }
			}
			c.start(c.publish)
			r := rand.New(rand.NewPCG(seed, 38))
			instances := make([]string, clusterInstances)
			for i := range instances {
				instances[i] = c.create(r, fmt.Sprint("first-", i))
			}
			stop := make(chan struct{})
			var writing sync.WaitGroup
			writing.Go(func() {
				r := rand.New(rand.NewPCG(seed, 39))
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
						c.set(r, workflowtest.OneOf(r, instances...), fmt.Sprint(n))
						c.pass(time.Duration(r.IntN(20)) * time.Millisecond)
					}
				}
			})
			for range rounds {
				c.fault(r)
			}
			close(stop)
			writing.Wait()
			c.pass(5 * time.Minute)
			assert.Empty(t, to.faults)
			for _, id := range instances {
				c.must(c.ask(r, func(router *workflow.Router) error {
					reply, err := router.Load(context.Background(), &message.Load{Caller: boss, WorkflowID: "stock", InstanceID: id})
					if err == nil {
						assert.Equal(t, reply.Sequence, to.seen[id])
					}
					return err
				}))
			}
			of, _ := services.Load(c.nodes[0])
			list, err := of.(*export.Service).Statuses(context.Background())
			c.must(err)
			assert.True(t, len(list) == 1 && list[0].Rows > 0 && list[0].Error == "", "%+v", list)
			for _, n := range c.nodes {
				n.stop()
			}
			t.Logf("seed %d: %d rows again", seed, to.again)
		})
	}
}
