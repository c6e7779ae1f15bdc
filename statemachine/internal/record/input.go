package record

import (
	"encoding/binary"
	"fmt"
	"slices"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
	"troupe/statemachine/packed"
)

// InputKind says what made an entry of a history.
type InputKind byte

// The kinds: an event of a caller, the creation, a timer, what happened to a child or a job, an event that the service sends, one of a
// child or of the parent, the end by the parent, and another version or what the instance was once.
const (
	BySender InputKind = iota
	ByCreation
	ByTimer
	ByCallback
	ByService
	ByKin
	ByCancel
	ByMigration
)

// Input is what a history keeps of what made an entry, beside the event, its data and time, and the name of who sent it: what the step took
// beyond that.
type Input struct {
	Kind   InputKind
	Failed bool          // the child or job has
	Part   *ElementID    // the timer, child or job; of kin nil: the parent
	From   *ElementID    // where the event of kin came from
	Text   string        // the id of the event, and of one of kin that by which it can be cancelled
	Caller *chart.Caller // as the definition sees it; nil: it sees the name alone
	Shut   [][2]uint64   // transitions that did not take the event because of rights or a claim: node, and place there
	Given  [2]data.Value // svcPublic and svcPrivate of who creates
	// Version is that of a new instance, or of a migrated or reset one.
	Version uint64
	// State is the record without documents, where the instance has changed since its entry before; of a migration or a reset, that behind it.
	State []byte
}

// The fields that are there.
const (
	inputFailed byte = 1 << iota
	inputPart
	inputFrom
	inputText
	inputCaller
	inputShut
	inputGiven
	inputState
)

// Append appends the stored form: kind(1) fields(1) version, and the fields that are there.
func (i *Input) Append(dst []byte) []byte {
	at := len(dst) + 1
	dst = binary.AppendUvarint(append(dst, byte(i.Kind), 0), i.Version)
	if i.Failed {
		dst[at] |= inputFailed
	}
	if i.Part != nil {
		dst[at] |= inputPart
		dst = i.Part.append(dst)
	}
	if i.From != nil {
		dst[at] |= inputFrom
		dst = i.From.append(dst)
	}
	if i.Text != "" {
		dst[at] |= inputText
		dst = packed.AppendText(dst, i.Text)
	}
	if c := i.Caller; c != nil {
		dst[at] |= inputCaller
		dst = packed.AppendText(dst, c.FullName)
		for _, list := range [][]string{c.Roles, c.Privileges} {
			dst = binary.AppendUvarint(dst, uint64(len(list)))
			for _, name := range list {
				dst = packed.AppendText(dst, name)
			}
		}
	}
	if len(i.Shut) > 0 {
		dst[at] |= inputShut
		dst = binary.AppendUvarint(dst, uint64(len(i.Shut)))
		for _, place := range i.Shut {
			dst = binary.AppendUvarint(binary.AppendUvarint(dst, place[0]), place[1])
		}
	}
	if len(i.Given[0])+len(i.Given[1]) > 0 {
		dst[at] |= inputGiven
		dst = packed.AppendText(packed.AppendText(dst, i.Given[0]), i.Given[1])
	}
	if len(i.State) > 0 {
		dst[at] |= inputState
		dst = packed.AppendText(dst, i.State)
	}
	return dst
}

// ParseInput reads what Append wrote; that of nothing is an event of a caller. It returns ErrRecord for all else.
func ParseInput(stored []byte) (i Input, err error) {
	if len(stored) == 0 {
		return i, nil
	}
	rd := packed.NewReader(stored)
	i.Kind = InputKind(rd.Byte())
	has := rd.Byte()
	i.Version, i.Failed = rd.Uvarint(), has&inputFailed != 0
	if has&inputPart != 0 {
		id := readElement(&rd)
		i.Part = &id
	}
	if has&inputFrom != 0 {
		id := readElement(&rd)
		i.From = &id
	}
	if has&inputText != 0 {
		i.Text = string(rd.Text())
	}
	if has&inputCaller != 0 {
		i.Caller = &chart.Caller{FullName: string(rd.Text())}
		for _, list := range []*[]string{&i.Caller.Roles, &i.Caller.Privileges} {
			for n := rd.Uvarint(); n > 0 && !rd.Failed(); n-- {
				*list = append(*list, string(rd.Text()))
			}
		}
	}
	if has&inputShut != 0 {
		for n := rd.Uvarint(); n > 0 && !rd.Failed(); n-- {
			i.Shut = append(i.Shut, [2]uint64{rd.Uvarint(), rd.Uvarint()})
		}
	}
	if has&inputGiven != 0 {
		i.Given = [2]data.Value{readData(&rd), readData(&rd)}
	}
	if has&inputState != 0 {
		i.State = rd.Text()
	}
	if !rd.Whole() || i.Kind > ByMigration {
		return Input{}, fmt.Errorf("%w: input", ErrRecord)
	}
	return i, nil
}

// Bare is the stored form of the instance without its documents.
func Bare(d *chart.Definition, in *Instance) []byte {
	bare := *in
	bare.Public, bare.Private = chart.EmptyObject, chart.EmptyObject
	return Append(nil, d, &bare, Chain{}, nil)
}

// Dressed makes the instance of what Bare wrote, with the documents of an instance.
func Dressed(d *chart.Definition, bare []byte, documents *Instance) (Instance, error) {
	r, err := Parse(bare)
	if err != nil {
		return Instance{}, err
	}
	in, err := Restore(d, documents.ID, r)
	in.Public, in.Private = documents.Public, documents.Private
	return in, err
}

// InputOfMove is the input of a migration or a reset: what the instance is behind it.
func InputOfMove(d *chart.Definition, before, after *Instance) Input {
	of := Input{Kind: ByMigration, Version: d.Version, State: Bare(d, after)}
	if string(after.Public) != string(before.Public) || string(after.Private) != string(before.Private) {
		of.Given = [2]data.Value{after.Public, after.Private}
	}
	return of
}

// Moved is the instance behind a migration or a reset, whose input InputOfMove made.
func (i *Input) Moved(d *chart.Definition, before *Instance) (Instance, error) {
	documents := &Instance{ID: before.ID, Public: before.Public, Private: before.Private}
	if i.Given[0] != nil {
		documents.Public, documents.Private = i.Given[0], i.Given[1]
	}
	return Dressed(d, i.State, documents)
}

// InputOfSender is the input of an event of a caller: of the caller what the definition reads, and the transitions that rights or a claim shut.
func InputOfSender(d *chart.Definition, caller *chart.Caller, id string, shut []*chart.Transition) (of Input) {
	if d.ReadsUser {
		of.Caller = caller
	}
	if d.ReadsEventID {
		of.Text = id
	}
	for _, t := range shut {
		of.Shut = append(of.Shut, [2]uint64{uint64(t.Source.Index), uint64(slices.Index(t.Source.On, t))}) //nolint:gosec // not negative
	}
	return of
}

// ShutIn returns the transitions of Shut.
func (i *Input) ShutIn(d *chart.Definition) (shut []*chart.Transition) {
	for _, at := range i.Shut {
		if at[0] < uint64(len(d.Nodes)) && at[1] < uint64(len(d.Nodes[at[0]].On)) {
			shut = append(shut, d.Nodes[at[0]].On[at[1]])
		}
	}
	return shut
}
