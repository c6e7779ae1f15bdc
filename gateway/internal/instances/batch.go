package instances

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow/batch"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/internal/parse"
	"troupe/statemachine/data"
)

// A batch is many creates and events in one request (gateway/INTERFACE.md, "Batches"):
//
//	source ──items──► batch.Batch ──► instances
//	(array or lines)      │         └──► other nodes (batchforward.go)
//	                      └──answers, in order──► x.Out ──► caller
//
// One goroutine does all of that but read lines, and wait for other nodes.

const (
	// batchWindow is how many items of one batch are on their way at most.
	batchWindow = 256
	// representWindow is batchWindow when answers have the record, which wait in memory for a slow caller.
	representWindow = 16
	// A batch whose lines come when there is no place for it looks for one again after placePauseMin, later
	// after PlacePauseMax.
	placePauseMin, PlacePauseMax = 5 * time.Millisecond, 100 * time.Millisecond
	// BatchBacklogMax is how many bytes may wait for the store before each batch has one item
	// on its way only: what batches have ahead of others, who wait after it.
	BatchBacklogMax = 4 << 20
)

// batchRun is a batch on its way.
type batchRun struct {
	x         *kernel.Exchange
	workflows Workflows
	shares    *BatchShares
	source    *itemSource
	batch     *batch.Batch
	results   bool    // results says that each answer is a line, not an element of an array
	represent bool    // answers have the record
	counted   bool    // see occupy
	key       string  // that of the whole batch; empty without one
	numbers   []int   // of the items in the whole batch; nil when this is the whole
	taken     int     // items that the batch has
	answered  int     // items whose answer is in x.Out or behind it
	waiting   sending // an item that there was no room for
}

func (run *batchRun) do() error {
	x := run.x
	run.begin()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	pause := time.Duration(0) // until it is looked for a place again
	for {
		if err := run.answer(); err != nil {
			return err
		}
		hasPlace := run.occupy(run.batch.Len() > 0 || run.source.atHand())
		hasRoom := hasPlace && run.batch.Len() < run.window()
		if hasRoom && run.take() {
			continue
		}
		if run.batch.Len() == 0 && run.source.ended() {
			return run.end()
		}
		if err := run.push(); err != nil {
			return err
		}
		var more <-chan chunk
		if hasRoom && run.waiting.item == nil {
			more = run.source.chunks
		}
		var place <-chan time.Time
		if pause = min(2*pause+placePauseMin, PlacePauseMax); hasPlace {
			pause = 0
		} else {
			place = time.After(pause)
		}
		select {
		case <-place:
		case c := <-more:
			run.source.add(x, c)
		case <-run.batch.Ready(more == nil):
		case <-ticker.C:
			run.batch.GiveUp()
			if x.Kernel.Draining.Load() && run.source.err == nil {
				run.source.fail(failure.ErrUnavailable)
			}
		}
	}
}

// occupy counts the batch among the requests that are worked on, and among those that share what there is of windows, while it
// has items. It reports false when there is no place for one that has items again.
func (run *batchRun) occupy(has bool) bool {
	switch {
	case has && !run.x.TakeSlot():
		return false
	case !has && run.source.chunks != nil:
		run.x.LeaveSlot()
	}
	if has == run.counted {
		return true
	}
	run.counted = has
	n := int64(1)
	if !has {
		n = -1
	}
	run.x.Usage.Batches.Add(n)
	run.shares.Batches.Add(n)
	return true
}

func (run *batchRun) window() int {
	if run.workflows.Backlog() > BatchBacklogMax {
		return 1
	}
	most := int64(batchWindow)
	if run.represent {
		most = representWindow
	}
	// Batches together have three quarters of what the workflows take at once, and those of
	// a user half of that. Each has one item in any case.
	all := int64(run.workflows.InFlightMax()) * 3 / 4
	ofAll := all / max(1, run.shares.Batches.Load())
	ofUser := all / 2 / max(1, run.x.Usage.Batches.Load())
	return int(max(1, min(most, ofAll, ofUser)))
}

// take sends the next item, and is false when there is none at hand or no room for it.
func (run *batchRun) take() bool {
	next := run.waiting
	if run.waiting = (sending{}); next.item == nil {
		item, ok := run.source.next()
		if !ok {
			return false
		}
		if run.taken == BatchItemsMax {
			run.source.fail(failure.Refuse(failure.ErrTooLarge, "a batch must not have more than %d items", BatchItemsMax))
			return false
		}
		next = run.requestOf(item)
	}
	if !run.send(&next) {
		run.waiting = next
		return false
	}
	run.taken++
	return true
}

// sending is an item on its way into the batch. One that finds no room is sent again: it is the same request, which counts once.
type sending struct {
	item data.Value // nil: there is none
	// One of these is set.
	create  *message.Create
	event   *message.Event
	refusal error
}

// send hands an item over. It is false when there is no room for it.
func (run *batchRun) send(s *sending) bool {
	switch {
	case s.create != nil:
		return run.batch.Create(s.create, s.item)
	case s.event != nil:
		return run.batch.Event(s.event, s.item)
	}
	run.batch.Refuse(s.refusal)
	return true
}

// requestOf makes a request of an item.
func (run *batchRun) requestOf(item data.Value) sending {
	x, s := run.x, sending{item: item}
	if int64(len(item)) > x.Kernel.Options.BodyBytesMax {
		s.refusal = failure.Refuse(failure.ErrTooLarge, "an item must not be larger than %d bytes", x.Kernel.Options.BodyBytesMax)
		return s
	}
	if item.Kind() != data.Object {
		s.refusal = parse.Malformed("an item must be a JSON object, not %s", parse.WithArticle(item.Kind()))
		return s
	}
	_, byID := item.Lookup("instanceId")
	_, byKey := item.Lookup("key")
	if !byID && !byKey {
		if s.create, s.refusal = parseCreate(item); s.refusal == nil {
			s.create.Caller, s.create.Span = x.Caller, x.Span
			s.create.Retry = run.retryOf("", "create", item)
		}
		return s
	}
	if s.event, s.refusal = parseEvent(item); s.refusal == nil {
		s.event.Caller, s.event.Span = x.Caller, x.Span
		s.event.Retry = run.retryOf(s.event.ID, "event", item)
	}
	return s
}

// retryOf is the key of an item. It means the same as the key of a request of its own.
func (run *batchRun) retryOf(eventID, route string, item data.Value) message.Retry {
	key := eventID
	if key == "" && run.key != "" {
		number := run.taken
		if run.numbers != nil {
			number = run.numbers[run.taken]
		}
		key = run.key + "\x00" + strconv.Itoa(number) // NB: no key of a caller's has that
	}
	if key == "" {
		return message.Retry{}
	}
	return message.Retry{Key: key, Fingerprint: kernel.Fingerprint(http.MethodPost, route, item)}
}

func (run *batchRun) begin() {
	x := run.x
	if run.represent {
		x.Writer.Header()["Preference-Applied"] = kernel.ValueRepresented
	}
	if run.results {
		x.ContentType = kernel.ValueLines
		return
	}
	x.Out = append(x.Out, `{"results":[`...)
}

func (run *batchRun) answer() error {
	x := run.x
	for {
		answer, ok := run.batch.Next()
		if !ok {
			return nil
		}
		if run.answered++; run.answered > 1 && !run.results {
			x.Out = append(x.Out, ',')
		}
		switch {
		case answer.Text != nil:
			x.Out = append(x.Out, answer.Text...)
		case answer.Err != nil:
			x.AppendItemError(answer.Err)
		default:
			run.appendReply(answer.Reply)
		}
		if run.results {
			x.Out = append(x.Out, '\n')
		}
		if len(x.Out) >= kernel.StreamBytes {
			if err := x.Flush(); err != nil {
				return err
			}
		}
	}
}

func (run *batchRun) appendReply(reply *message.Reply) {
	x := run.x
	if run.represent {
		if err := x.RecordReply(reply); err != nil {
			x.AppendItemError(err)
			return
		}
	}
	x.Out = append(x.Out, `{"status":200,"workflowId":"`...)
	x.Out = append(x.Out, reply.WorkflowID...) // NB: identifiers need no escapes
	x.Out = append(x.Out, `","instanceId":"`...)
	x.Out = append(x.Out, reply.InstanceID...)
	x.Out = append(x.Out, `","sequence":`...)
	x.Out = strconv.AppendUint(x.Out, reply.Sequence, 10)
	x.AppendCreated(reply)
	if run.represent {
		x.Out = append(x.Out, `,"state":`...)
		x.Out = reply.AppendRecord(x.Out)
	}
	x.Out = append(x.Out, '}')
}

// push sends what there is to a caller who may wait for it.
func (run *batchRun) push() error {
	x := run.x
	if !run.results || len(x.Out) == 0 {
		return nil
	}
	if err := x.Flush(); err != nil {
		return err
	}
	return x.Push()
}

func (run *batchRun) end() error {
	x := run.x
	x.RenewWriteTime()
	if !run.results {
		x.Out = append(x.Out, "]}"...)
		return x.SendRest()
	}
	if err := run.source.err; !errors.Is(err, io.EOF) {
		x.AppendItemError(err)
		x.Out = append(x.Out, '\n')
		return run.push() // NB: before the rest of the body is read
	}
	return x.SendRest()
}
