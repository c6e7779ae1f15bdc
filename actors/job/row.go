package job

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/actors/failure"
	"troupe/actors/internal/instanceid"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// The rows of a job, each under its name (key.Job), but for the offer:
//
//	job    what it is; written by the commit that enters its state. The one that leaves or ends it writes in its place how the job has
//	       ended, so that a request that is repeated is answered as the first time; forgotten after a while
//	offer  the last attempt: who has it, or had it; empty before the first. Stands in the order in which jobs are given, and goes with the job
//
// The instance writes all of them without reading any. The node that leads the shard writes offers, and may do so in the moment
// in which the instance ends the job: an offer without a job means nothing, and is removed when it is met.

// row is what a job is. As stored it begins with the length of its type, which is not 0.
type row struct {
	Type, Workflow string
	Version        uint64
	Machine, Node  string
	Priority       int
	Created        time.Time
	Trace          string
	Data           data.Value
}

func (r *row) append(dst []byte) []byte {
	dst = slices.Grow(dst, 64+len(r.Type)+len(r.Workflow)+len(r.Machine)+len(r.Node)+len(r.Trace)+len(r.Data))
	dst = packed.AppendText(packed.AppendText(dst, r.Type), r.Workflow)
	dst = binary.AppendUvarint(dst, r.Version)
	dst = packed.AppendText(packed.AppendText(dst, r.Machine), r.Node)
	dst = packed.AppendTime(append(dst, byte(r.Priority)), r.Created) //nolint:gosec // 0 to 100
	return append(packed.AppendText(dst, r.Trace), r.Data...)
}

func parseRow(value []byte) (r row, err error) {
	p := packed.NewReader(value)
	r = row{Type: string(p.Text()), Workflow: string(p.Text()), Version: p.Uvarint(), Machine: string(p.Text()), Node: string(p.Text())}
	r.Priority, r.Created, r.Trace = int(p.Byte()), p.Time(), string(p.Text())
	if r.Data = data.Value(p.Rest()); p.Failed() {
		err = fmt.Errorf("job: %w", persistence.ErrCorrupt)
	}
	return r, err
}

func (r *row) offer(j key.Job) key.Offer {
	return key.Offer{Type: r.Type, Priority: uint8(r.Priority), Workflow: r.Workflow, Created: max(r.Created.UnixMilli(), 0), Job: j} //nolint:gosec // 0 to 100
}

// The states of an attempt.
const (
	leased  byte = 'l'
	waits   byte = 'w' // for its offer, or until it gets one
	failing byte = 'g' // for good; its instance does not know yet
	failed  byte = 'f' // for good, and nothing took that
)

// attempt is the last attempt at a job.
type attempt struct {
	State byte
	// Returned: the holder gave the lease back, or somebody took it away. Else the holder may complete the job, also when it ran out.
	Returned bool
	Attempts int // that have begun
	Lease    string
	Worker   string
	At       time.Time // leased: the deadline; waits: when it is offered
	Message  string    // of the last attempt that failed
}

// isOver reports whether no other attempt follows.
func (a *attempt) isOver() bool { return a.State == failing || a.State == failed }

func (a *attempt) append(dst []byte) []byte {
	var returned byte
	if a.Returned {
		returned = 1
	}
	dst = slices.Grow(dst, 48+len(a.Lease)+len(a.Worker)+len(a.Message))
	dst = binary.AppendUvarint(append(dst, a.State, returned), uint64(a.Attempts)) //nolint:gosec // not negative
	dst = packed.AppendTime(packed.AppendText(packed.AppendText(dst, a.Lease), a.Worker), a.At)
	return packed.AppendText(dst, a.Message)
}

func parseAttempt(value []byte) (a attempt, err error) {
	if len(value) == 0 {
		return a, nil
	}
	p := packed.NewReader(value)
	a = attempt{State: p.Byte(), Returned: p.Byte() == 1, Attempts: int(min(p.Uvarint(), 1<<31-1))} //nolint:gosec // bounded
	a.Lease, a.Worker, a.At, a.Message = string(p.Text()), string(p.Text()), p.Time(), string(p.Text())
	if !p.Whole() {
		err = fmt.Errorf("attempt at a job: %w", persistence.ErrCorrupt)
	}
	return a, err
}

// The ways in which a job ends.
const (
	ended      byte = 'l' // its state was left
	completed  byte = 'd'
	failedOver byte = 'f' // for good, and its instance took that
)

// end is how a job has ended. As stored it begins with isEnd.
type end struct {
	How            byte
	At             time.Time
	Type, Workflow string
	Lease          string // that has ended it; "" of none
}

// isEnd is what the value of an end begins with.
const isEnd byte = 0

func (e *end) append(dst []byte) []byte {
	dst = slices.Grow(dst, 32+len(e.Type)+len(e.Workflow)+len(e.Lease))
	dst = packed.AppendTime(append(dst, isEnd, e.How), e.At)
	return packed.AppendText(packed.AppendText(packed.AppendText(dst, e.Type), e.Workflow), e.Lease)
}

func parseEnd(value []byte) (e end, err error) {
	p := packed.NewReader(value)
	is := p.Byte()
	e = end{How: p.Byte(), At: p.Time(), Type: string(p.Text()), Workflow: string(p.Text()), Lease: string(p.Text())}
	if !p.Whole() || is != isEnd {
		err = fmt.Errorf("end of a job: %w", persistence.ErrCorrupt)
	}
	return e, err
}

// settles is nil when the job ended as the holder of a lease wants it to, else why it cannot any more.
func (e *end) settles(lease string, failed bool) error {
	switch {
	case e.How == ended:
		return failure.Refuse(failure.ErrEnded, "the state that has made the job was left")
	case e.Lease != lease && e.How == failedOver:
		return errFailed
	case e.Lease != lease:
		return errLeaseLost
	case failed != (e.How == failedOver):
		return failure.Refuse(failure.ErrEnded, "the job has ended")
	}
	return nil
}

var (
	errLeaseLost = failure.Refuse(failure.ErrLeaseLost, "another one has the job, or its lease is over")
	errEnded     = failure.Refuse(failure.ErrEnded, "the job has ended")
	errFailed    = failure.Refuse(failure.ErrEnded, "the job has failed for good, or was cancelled")
)

// Origin is the event that changes jobs of an instance.
type Origin struct {
	Shard    key.Shard
	Workflow string
	Version  uint64
	Instance key.ID
	At       time.Time
	Trace    string   // the value of trace.Header for the jobs that it begins; "": nobody follows it
	Settled  *Settled // the job that the event ends; nil: none
}

func (of *Origin) job(id statemachine.ElementID) key.Job {
	return key.Job{ID: of.Instance, Sequence: id.Sequence, Number: id.Number}
}

// Change is what a commit changes in a job: it waits from now on, it has ended, it has failed and nothing took that, or its row is another.
type Change struct {
	how   byte
	offer key.Offer
	row   []byte // of one that begins, as stored; else nil
}

const (
	hasBegun  byte = 'b'
	hasEnded  byte = 'e'
	hasFailed byte = 'f'
	hasMoved  byte = 'm'
)

// Put writes what an event changes in the jobs of its instance, as statemachine.Instance.JobChanges has it, into the commit
// of that event. Service.Changed is told the changes when they are visible.
func Put(w *persistence.Batch, of *Origin, over, begun []statemachine.Job) []Change {
	changes := make([]Change, 0, len(over)+len(begun))
	for i := range over {
		if !slices.ContainsFunc(begun, func(j statemachine.Job) bool { return j.ID == over[i].ID }) { // else it has failed, or begins again
			changes = append(changes, of.end(w, &over[i]))
		}
	}
	for i := range begun {
		changes = append(changes, of.begin(w, &begun[i]))
	}
	return changes
}

func (of *Origin) end(w *persistence.Batch, j *statemachine.Job) Change {
	name, r := of.job(j.ID), of.row(j)
	offer, e := r.offer(name), end{How: ended, At: of.At, Type: j.Type, Workflow: of.Workflow}
	if s := of.Settled; s != nil && s.ID == j.ID {
		if e.How, e.Lease = completed, s.attempt.Lease; s.Failed {
			e.How = failedOver
		}
	}
	at := offer.Key(nil, of.Shard)
	w.Delete(at)
	w.Set(name.Key(at[:0], of.Shard), e.append(nil))
	return Change{how: hasEnded, offer: offer}
}

func (of *Origin) begin(w *persistence.Batch, j *statemachine.Job) Change {
	name, r := of.job(j.ID), of.row(j)
	offer := r.offer(name)
	if !j.Failed {
		stored, at := r.append(nil), offer.Key(nil, of.Shard)
		w.Set(at, nil)
		w.Set(name.Key(at[:0], of.Shard), stored)
		return Change{hasBegun, offer, stored}
	}
	a := attempt{}
	if s := of.Settled; s != nil && s.ID == j.ID {
		a = s.attempt
	} else { // it comes from elsewhere
		w.Set(name.Key(nil, of.Shard), r.append(nil))
	}
	a.State = failed
	w.Set(offer.Key(nil, of.Shard), a.append(nil))
	return Change{how: hasFailed, offer: offer}
}

// Move writes that an instance has another version of its workflow, where jobs that go on may be at other nodes. load reads rows.
func Move(w *persistence.Batch, of *Origin, load func(key []byte) ([]byte, error), kept []statemachine.Job) (changes []Change) {
	for i := range kept {
		name, r := of.job(kept[i].ID), of.row(&kept[i])
		if before, err := loadOpen(load, of.Shard, name); err == nil {
			r.Trace = before.Trace
		} // NB: else it is a part of the trace of this event
		c := Change{how: hasMoved, offer: r.offer(name), row: r.append(nil)}
		w.Set(name.Key(nil, of.Shard), c.row)
		changes = append(changes, c)
	}
	return changes
}

func (of *Origin) row(j *statemachine.Job) row {
	return row{
		Type: j.Type, Workflow: of.Workflow, Version: of.Version, Machine: string(j.At.Machine), Node: string(j.At.Node),
		Priority: j.Priority, Created: j.Begun, Trace: of.Trace, Data: j.Data,
	}
}

// Settled is an end that the holder of a lease may give a job.
type Settled struct {
	ID       statemachine.ElementID
	Failed   bool
	Attempts int    // that have begun
	Message  string // of the last one that failed
	attempt  attempt
}

// Data is event.data of what happened to the job of an instance; output is nil for none.
func (s *Settled) Data(of key.ID, output data.Value) data.Value {
	v := data.AppendString(append(make(data.Value, 0, 96+len(s.Message)+len(output)), `{"jobId":`...), IDOf(of, s.ID))
	switch {
	case s.Failed:
		v = data.AppendString(append(v, `,"message":`...), s.Message)
	case output == nil:
		v = append(v, `,"output":null`...)
	default:
		v = append(append(v, `,"output":`...), output...)
	}
	return append(strconv.AppendInt(append(v, `,"attempts":`...), int64(s.Attempts), 10), '}')
}

// CheckOutput holds that what a job gives fits what its workflow says of its type, nil for nothing: failure.ErrUnprocessable.
func CheckOutput(of *statemachine.JobType, output data.Value) error {
	if of == nil {
		return nil
	}
	if output == nil {
		output = data.Value("null")
	}
	if err := of.Output.Check(output); err != nil {
		return failure.Refuse(failure.ErrUnprocessable, "output: %w", err)
	}
	return nil
}

// loadAttempt returns the last attempt at a job, an empty one when there was none.
func loadAttempt(load func(key []byte) ([]byte, error), sh key.Shard, o *key.Offer) (a attempt, err error) {
	value, err := load(o.Key(nil, sh))
	if errors.Is(err, persistence.ErrNotFound) {
		return a, nil
	}
	if err == nil {
		a, err = parseAttempt(value)
	}
	return a, failure.OfStore(err)
}

// loadRow returns what a job is or how it has ended, failure.ErrNotFound when nothing is known of it.
func loadRow(load func(key []byte) ([]byte, error), sh key.Shard, name key.Job) (r row, over *end, err error) {
	value, err := load(name.Key(nil, sh))
	switch {
	case err != nil:
	case hasOver(value):
		over = new(end)
		*over, err = parseEnd(value)
	default:
		r, err = parseRow(value)
	}
	return r, over, found(err)
}

// loadOpen is loadRow of a job that has not ended, else failure.ErrNotFound.
func loadOpen(load func(key []byte) ([]byte, error), sh key.Shard, name key.Job) (row, error) {
	r, over, err := loadRow(load, sh, name)
	if over != nil {
		err = failure.ErrNotFound
	}
	return r, err
}

// hasOver reports whether the value of a row of a job is how it has ended.
func hasOver(value []byte) bool { return len(value) > 0 && value[0] == isEnd }

func found(err error) error {
	if errors.Is(err, persistence.ErrNotFound) {
		return failure.ErrNotFound
	}
	return failure.OfStore(err)
}

// Remove removes the offers of the jobs of an instance that is deleted; its other rows begin with its id.
func Remove(w *persistence.Batch, of *Origin, open []statemachine.Job) (changes []Change) {
	for i := range open {
		r := of.row(&open[i])
		offer := r.offer(of.job(open[i].ID))
		w.Delete(offer.Key(nil, of.Shard))
		changes = append(changes, Change{how: hasEnded, offer: offer})
	}
	return changes
}

// Check says whether a job has ended and what is wrong with its rows, of which rowKey and value are its own: nobody would ever get it.
func Check(load func(key []byte) ([]byte, error), sh key.Shard, rowKey, value []byte) (isOver bool, err error) {
	if hasOver(value) {
		_, err := parseEnd(value)
		return true, err
	}
	name, ok := key.ParseJob(rowKey)
	r, err := parseRow(value)
	if !ok || err != nil {
		return false, errors.Join(persistence.ErrCorrupt, err)
	}
	o := r.offer(name)
	if value, err = load(o.Key(nil, sh)); errors.Is(err, persistence.ErrNotFound) {
		return false, errors.New("a job is offered to nobody")
	}
	if err == nil {
		_, err = parseAttempt(value)
	}
	return false, err
}

// Forget removes what is known of jobs that ended before a time.
func Forget(store *persistence.Store, before time.Time) error {
	return store.DeleteWhere(key.JobsPrefix(nil, key.EveryShard, key.JobRow), func(value []byte) (bool, error) {
		if !hasOver(value) {
			return false, nil
		}
		e, err := parseEnd(value)
		return err == nil && e.At.Before(before), err
	})
}

// IDOf is what programs call a job of an instance.
func IDOf(instance key.ID, id statemachine.ElementID) string {
	return instanceid.PartText(instance, id.Sequence, id.Number)
}

func elementOf(j key.Job) statemachine.ElementID {
	return statemachine.ElementID{Sequence: j.Sequence, Number: j.Number}
}

// parseID reads the one spelling that IDOf writes.
func parseID(text string) (j key.Job, ok bool) {
	j.ID, j.Sequence, j.Number, ok = instanceid.ParsePart(text)
	return j, ok
}

// newLease draws what nobody can guess.
func newLease() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func left(retries, attempts int) int { return max(retries+1-attempts, 0) }

// messageMax is how many bytes of a message are kept.
const messageMax = 4 << 10

func shortened(text string) string {
	if len(text) > messageMax {
		text = text[:messageMax]
	}
	return strings.ToValidUTF8(text, "")
}
