package key

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawKey draws the parts of a key of any table.
func drawKey(t *rapid.T, label string) Parts {
	k := Parts{
		Table: rapid.SampledFrom([]string{
			"record", "entry", "draft", "list", "node", "index", "indexstate", "reply", "count", "definition", "setting", "credential",
			"timer", "incident", "delivery", "attempt", "schedule", "task", "taskdraft", "work", "activity", "feed",
		}).Draw(t, label+" table"),
		Shard: Shard(rapid.SampledFrom([]int{0, 1, 255, 256, 0xFFFF}).Draw(t, label+" shard")),
	}
	// Short alphabets make near misses likely: one name a prefix of another, a
	// byte that looks like a length.
	text := rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', 1, 2, 0, 'ÿ'}), 0, 3, -1)
	long := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("a", rapid.SampledFrom([]int{1, 253, 254, 255, 256, 300}).Draw(t, "length"))
	})
	name := rapid.OneOf(text, text, text, long)
	array := func(label string) (b [16]byte) {
		copy(b[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xFF}), 16, 16).Draw(t, label))
		return b
	}
	number := rapid.SampledFrom([]uint64{0, 1, 255, 256, 1<<64 - 1})
	switch k.Table {
	case "record":
		k.Workflow, k.ID = name.Draw(t, label+" workflow"), array(label+" id")
	case "entry":
		k.ID, k.Number = array(label+" id"), number.Draw(t, label+" seq")
	case "draft":
		k.ID, k.Name = array(label+" id"), name.Draw(t, label+" user")
	case "list":
		k.Kind, k.Name = rapid.Byte().Draw(t, label+" list"), name.Draw(t, label+" user")
		k.Number, k.ID = number.Draw(t, label+" when"), array(label+" id")
	case "node":
		k.Workflow, k.Node = name.Draw(t, label+" workflow"), name.Draw(t, label+" node")
		k.ID, k.Machine = array(label+" id"), name.Draw(t, label+" machine")
	case "index":
		k.Number, k.ID = uint64(uint32(number.Draw(t, label+" index"))), array(label+" id")
		k.Value = string(appendText(nil, name.Draw(t, label+" value"))) // no value is a prefix of another
	case "indexstate":
		k.Number = uint64(uint32(number.Draw(t, label+" index")))
	case "reply":
		k.ID, k.Reply = array(label+" id"), array(label+" key")
	case "count":
		k.Workflow, k.Number = name.Draw(t, label+" workflow"), number.Draw(t, label+" version")
	case "definition":
		k.Shard, k.Workflow, k.Number = Meta, name.Draw(t, label+" workflow"), number.Draw(t, label+" version")
	case "setting":
		k.Shard, k.Name = Meta, name.Draw(t, label+" name")
	case "credential":
		k.Shard, k.Kind, k.Name = Meta, rapid.Byte().Draw(t, label+" kind"), name.Draw(t, label+" id")
	case "schedule":
		k.Workflow, k.Name = name.Draw(t, label+" workflow"), name.Draw(t, label+" name")
	case "feed":
		k.Number = number.Draw(t, label+" place")
	case "work":
		k.Kind, k.Order, k.Name = rapid.SampledFrom([]byte("aMzR")).Draw(t, label+" list"), rapid.Byte().Draw(t, label+" order"), name.Draw(t, label+" whose")
		k.Sorted, k.ID = number.Draw(t, label+" sorted"), array(label+" id")
		if isByWorkflow(k.Kind) {
			k.Workflow = name.Draw(t, label+" workflow")
		}
		k.Number, k.Place = number.Draw(t, label+" seq"), uint32(number.Draw(t, label+" place"))
	case "timer", "incident", "delivery", "attempt", "task", "taskdraft", "activity":
		k.ID, k.Number, k.Place = array(label+" id"), number.Draw(t, label+" seq"), uint32(number.Draw(t, label+" place"))
		if k.Table == "timer" || k.Table == "attempt" {
			k.Due = int64(number.Draw(t, label+" due") >> 1)
		}
		if k.Table == "delivery" || k.Table == "attempt" || k.Table == "taskdraft" {
			k.Name = name.Draw(t, label+" queue or user")
		}
		if k.Table == "attempt" {
			k.Workflow = name.Draw(t, label+" workflow")
		}
	}
	return k
}

// build makes the bytes of a key from its parts.
func build(k Parts) []byte {
	switch k.Table {
	case "record":
		return Record(nil, k.Shard, k.Workflow, k.ID)
	case "entry":
		return Entry(nil, k.Shard, k.ID, k.Number)
	case "draft":
		return Draft(nil, k.Shard, k.ID, k.Name)
	case "list":
		return List(nil, k.Shard, k.Kind, k.Name, int64(k.Number), k.ID)
	case "node":
		return Node(nil, k.Shard, k.Workflow, k.Node, k.Machine, k.ID)
	case "index":
		return Index(nil, k.Shard, uint32(k.Number), []byte(k.Value), k.ID)
	case "indexstate":
		return IndexState(nil, k.Shard, uint32(k.Number))
	case "reply":
		return Reply(nil, k.Shard, k.ID, k.Reply)
	case "count":
		return Count(nil, k.Shard, k.Workflow, k.Number)
	case "definition":
		return Definition(nil, k.Workflow, k.Number)
	case "setting":
		return Setting(nil, k.Name)
	case "credential":
		return Credential(nil, k.Kind, k.Name)
	case "schedule":
		return Schedule(nil, k.Shard, k.Workflow, k.Name)
	case "feed":
		return Feed(nil, k.Shard, FeedPlace(k.Number))
	case "timer":
		return Timer{k.Due, k.ID, k.Number, k.Place}.Key(nil, k.Shard)
	case "incident":
		return Incident(nil, k.Shard, k.ID, k.Number, k.Place)
	case "delivery":
		return Delivery{k.ID, k.Name, k.Number, k.Place}.Key(nil, k.Shard)
	case "attempt":
		return Attempt(nil, k.Shard, k.Workflow, k.Due, Delivery{k.ID, k.Name, k.Number, k.Place})
	case "task":
		return Task(nil, k.Shard, k.ID, k.Number, k.Place)
	case "taskdraft":
		return TaskDraft(nil, k.Shard, k.ID, k.Number, k.Place, k.Name)
	case "activity":
		return Activity(nil, k.Shard, k.ID, k.Number, k.Place)
	case "work":
		return (&Work{k.Kind, k.Name, k.Order, k.Workflow, k.Sorted, k.ID, k.Number, k.Place}).Key(nil, k.Shard)
	case "replica":
		switch k.Kind {
		case 'l':
			return binary.BigEndian.AppendUint64(append(ReplicaLogPrefix(nil, k.Shard), 'l'), k.Number)
		case 'v':
			return append(append(ReplicaLogPrefix(nil, k.Shard), 'v'), k.Name...)
		}
		return append(ReplicaPrefix(nil, k.Shard), k.Kind)
	}
	panic("unknown table " + k.Table)
}

func TestParsingABuiltKeyGivesItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawKey(t, "key")
		got, ok := Parse(build(want))
		require.True(t, ok && got == want, "got %+v, %t, want %+v", got, ok, want)
	})
}

func TestNoTwoKeysCollideAndNoneIsAPrefixOfAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t, "a"), drawKey(t, "b")
		if rapid.Bool().Draw(t, "same table") {
			b.Table = a.Table
			if parsed, ok := Parse(build(b)); ok {
				b = parsed
			}
		}
		if a == b {
			return
		}
		if bytes.HasPrefix(build(a), build(b)) || bytes.HasPrefix(build(b), build(a)) {
			t.Fatalf("%+v is %x\n%+v is %x\none begins with the other", a, build(a), b, build(b))
		}
	})
}

func TestAPrefixCoversItsKeysAndNoOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t, "a"), drawKey(t, "b")
		var prefix []byte
		var same bool
		sameTable := a.Table == b.Table && a.Shard == b.Shard
		switch a.Table {
		case "record":
			prefix, same = RecordPrefix(nil, a.Shard, a.Workflow), sameTable && a.Workflow == b.Workflow
		case "entry":
			prefix, same = EntryPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
		case "draft":
			prefix, same = DraftPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
		case "list":
			prefix, same = ListPrefix(nil, a.Shard, a.Kind, a.Name), sameTable && a.Kind == b.Kind && a.Name == b.Name
		case "node":
			prefix = NodePrefix(nil, a.Shard, a.Workflow, a.Node)
			same = sameTable && a.Workflow == b.Workflow && a.Node == b.Node
			if rapid.Bool().Draw(t, "of one machine") {
				prefix = MachinePrefix(nil, a.Shard, a.Workflow, a.Node, a.Machine)
				same = same && a.Machine == b.Machine
			}
		case "index":
			prefix, same = IndexPrefix(nil, a.Shard, uint32(a.Number)), sameTable && a.Number == b.Number
		case "indexstate":
			prefix, same = IndexStatePrefix(nil, a.Shard), sameTable
		case "reply":
			prefix, same = ReplyPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
		case "count":
			prefix, same = CountPrefix(nil, a.Shard, a.Workflow), sameTable && a.Workflow == b.Workflow
		case "definition":
			prefix, same = DefinitionPrefix(nil, a.Workflow), sameTable && a.Workflow == b.Workflow
		case "setting":
			prefix, same = SettingsPrefix(nil), sameTable
		case "credential":
			prefix, same = CredentialPrefix(nil, a.Kind), sameTable && a.Kind == b.Kind
		case "task":
			prefix, same = TaskPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
		case "taskdraft":
			prefix, same = TaskDraftsPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
			if rapid.Bool().Draw(t, "of one task") {
				prefix = TaskDraftPrefix(nil, a.Shard, a.ID, a.Number, a.Place)
				same = same && a.Number == b.Number && a.Place == b.Place
			}
		case "activity":
			prefix, same = ActivityPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
		case "work":
			prefix = WorkPrefix(nil, a.Shard, a.Kind, a.Name, a.Order)
			same = sameTable && a.Kind == b.Kind && a.Name == b.Name && a.Order == b.Order
			if rapid.Bool().Draw(t, "in all orders") {
				prefix, same = WorkListPrefix(nil, a.Shard, a.Kind, a.Name), sameTable && a.Kind == b.Kind && a.Name == b.Name
			}
		case "schedule":
			prefix, same = SchedulePrefix(nil, a.Shard), sameTable
		case "feed":
			prefix, same = FeedPrefix(nil, a.Shard), sameTable
		case "timer":
			prefix, same = TimerPrefix(nil, a.Shard), sameTable
		case "incident":
			prefix, same = IncidentPrefix(nil, a.Shard), sameTable
		case "delivery":
			prefix, same = DeliveryPrefix(nil, a.Shard, a.ID), sameTable && a.ID == b.ID
			if rapid.Bool().Draw(t, "of one queue") {
				prefix, same = DeliveryQueuePrefix(nil, a.Shard, a.ID, a.Name), same && a.Name == b.Name
			}
		case "attempt":
			prefix, same = StreamPrefix(nil, a.Shard, a.Workflow, a.Name), sameTable && a.Workflow == b.Workflow && a.Name == b.Name
		}
		key, end := build(b), PrefixEnd(prefix)
		inRange := bytes.Compare(prefix, key) <= 0 && (end == nil || bytes.Compare(key, end) < 0)
		require.True(t, inRange == same && bytes.HasPrefix(key, prefix) == same, "%v %v %v %v %v %v", a, prefix, b, key, inRange, same)
	})
}

func TestKeysAreInTheDocumentedOrder(t *testing.T) {
	id := func(n byte) ID { return ID{15: n} }
	for name, keys := range map[string][][]byte{
		"records by id": {Record(nil, 3, "wf", id(1)), Record(nil, 3, "wf", id(2)), Record(nil, 3, "wf", ID{1})},
		"entries by sequence": {
			Entry(nil, 3, id(1), 1), Entry(nil, 3, id(1), 2), Entry(nil, 3, id(1), 256), Entry(nil, 3, id(2), 1),
		},
		"lists by time, newest first, then id": {
			List(nil, 3, 'f', "u", 300, id(1)), List(nil, 3, 'f', "u", 256, id(1)), List(nil, 3, 'f', "u", 256, id(2)), List(nil, 3, 'f', "u", 0, id(0)),
		},
		"nodes by machine, then id": {
			Node(nil, 3, "wf", "a", "m", id(1)), Node(nil, 3, "wf", "a", "m", id(2)), Node(nil, 3, "wf", "a", "n", id(1)),
		},
		"index entries by value, then id": {
			Index(nil, 3, 7, []byte("a\x00"), id(1)), Index(nil, 3, 7, []byte("a\x00"), id(2)),
			Index(nil, 3, 7, []byte("aa\x00"), id(1)), Index(nil, 3, 8, nil, id(1)),
		},
		"timers by deadline": {
			Timer{255, id(2), 1, 0}.Key(nil, 3), Timer{256, id(1), 9, 0}.Key(nil, 3), Timer{256, id(1), 9, 1}.Key(nil, 3), Timer{1 << 40, id(0), 0, 0}.Key(nil, 3),
		},
		"deliveries by queue, then sequence": {
			Delivery{id(1), "a", 9, 1}.Key(nil, 3), Delivery{id(1), "a", 256, 0}.Key(nil, 3), Delivery{id(1), "b", 1, 0}.Key(nil, 3), Delivery{id(2), "a", 1, 0}.Key(nil, 3),
		},
		"attempts by stream, then time": {
			Attempt(nil, 3, "wf", 255, Delivery{id(2), "a", 1, 0}), Attempt(nil, 3, "wf", 256, Delivery{id(1), "a", 1, 0}), Attempt(nil, 3, "wf", 1, Delivery{id(1), "b", 1, 0}),
		},
		"definitions by version": {Definition(nil, "wf", 9), Definition(nil, "wf", 10), Definition(nil, "wf", 256)},
		"shards, meta last":      {ShardPrefix(nil, 0), Record(nil, 0, "", id(1)), ShardPrefix(nil, 1), ShardPrefix(nil, 300), ShardPrefix(nil, Meta)},
	} {
		assert.True(t, slices.IsSortedFunc(keys, bytes.Compare), "%s: not in order: %x", name, keys)
	}
}

// The bytes of keys are the on-disk format: a change here needs a new format
// version and a migration.
func TestTheBytesOfKeysDoNotChange(t *testing.T) {
	id := ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	for want, key := range map[string][]byte{
		"000372" + "027766" + "0102030405060708090a0b0c0d0e0f10":                   Record(nil, 3, "wf", id),
		"000365" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007":         Entry(nil, 3, id, 7),
		"00036e" + "027766" + "0161" + "016d" + "0102030405060708090a0b0c0d0e0f10": Node(nil, 3, "wf", "a", "m", id),
		"000369" + "00000007" + "7600" + "0102030405060708090a0b0c0d0e0f10":        Index(nil, 3, 7, []byte("v\x00"), id),
		"00036a" + "00000007": IndexState(nil, 3, 7),
		"00036b" + "0102030405060708090a0b0c0d0e0f10" + "0102030405060708090a0b0c0d0e0f10": Reply(nil, 3, id, id),
		"000363" + "027766" + "0000000000000002":                                           Count(nil, 3, "wf", 2),
		"ffff64" + "027766" + "0000000000000002":                                           Definition(nil, "wf", 2),
		"ffff73" + "0178":                                                                  Setting(nil, "x"),
		"ffff74" + "54" + "0178":                                                           Credential(nil, 'T', "x"),
		"000377" + "0000000000000009" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002": Timer{9, id, 7, 2}.Key(nil, 3),
		"000379" + "027766" + "0173": Schedule(nil, 3, "wf", "s"),
		"000378" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002":                                          Incident(nil, 3, id, 7, 2),
		"00036f" + "0102030405060708090a0b0c0d0e0f10" + "0168" + "0000000000000007" + "00000002":                                 Delivery{id, "h", 7, 2}.Key(nil, 3),
		"000371" + "027766" + "0168" + "0000000000000009" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002": Attempt(nil, 3, "wf", 9, Delivery{id, "h", 7, 2}),
		"000372" + "ff00ff" + strings.Repeat("61", 255) + "0102030405060708090a0b0c0d0e0f10":                                     Record(nil, 3, strings.Repeat("a", 255), id),
	} {
		assert.Equal(t, want, hex.EncodeToString(key))
	}
	for id, want := range map[ID]Shard{{}: 0, {1}: 15, id: 0, {15: 1}: 13} {
		assert.Equal(t, want, id.Shard(16), "shard of %x", id)
	}
}

func TestIDsSpreadOverTheShards(t *testing.T) {
	const ids, n = 16_000, 16
	var count [n]int
	for i := range ids { // like ULIDs of one second: the same front, a random end
		id := ID{1, 2, 3, 4, 5, 6}
		copy(id[6:], fmt.Sprintf("%010d", i*7919))
		count[id.Shard(n)]++
	}
	for sh, got := range count {
		if got < ids/n*8/10 || got > ids/n*12/10 {
			t.Errorf("shard %d: got %d ids, want about %d", sh, got, ids/n)
		}
	}
}

func TestThePartsOfAKeyCanBeReadAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t, "key")
		key := build(k)
		id, ok := RecordID(key)
		require.True(t, ok == (k.Table == "record") && (!ok || id == k.ID), "RecordID of %+v: got %x, %t", k, id, ok)
		id, ok = NodeID(key)
		require.True(t, ok == (k.Table == "node") && (!ok || id == k.ID), "NodeID of %+v: got %x, %t", k, id, ok)
		m, ok := NodeMachine(key)
		require.True(t, ok == (k.Table == "node") && (!ok || string(m) == k.Machine), "NodeMachine of %+v: got %q, %t", k, m, ok)
		v, id, ok := ParseIndex(key)
		require.True(t, ok == (k.Table == "index") && !(ok && (string(v) != k.Value || id != k.ID)), "ParseIndex of %+v: got %q %x, %t", k, v, id, ok)
		p, id, ok := ParseList(key)
		require.True(t, ok == (k.Table == "list") && !(ok && (binary.BigEndian.Uint64(p) != ^k.Number || id != k.ID)), "ParseList of %+v: got %x %x, %t", k, p, id, ok)
		p, timer, ok := ParseTimer(key)
		require.True(t, ok == (k.Table == "timer") && !(ok && (PlaceTime(p) != k.Due || timer != Timer{k.Due, k.ID, k.Number, k.Place})), "%v %v %v %v", k, p, timer, ok)
		d, ok := ParseDelivery(key)
		require.True(t, ok == (k.Table == "delivery") && (!ok || d == Delivery{k.ID, k.Name, k.Number, k.Place}), "ParseDelivery of %+v: got %+v, %t", k, d, ok)
		if w, p, when, d, ok := ParseAttempt(key); ok != (k.Table == "attempt") ||
			(ok && (w != k.Workflow || PlaceTime(p) != k.Due || when != k.Due || d != Delivery{k.ID, k.Name, k.Number, k.Place})) {
			t.Fatalf("ParseAttempt of %+v: got %q %x %d %+v, %t", k, w, p, when, d, ok)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(Record(nil, 1, "wf", ID{1}))
	f.Add(Node(nil, 1, "wf", "node", "machine", ID{1}))
	f.Add(Index(nil, 1, 9, []byte("value\x00"), ID{1}))
	f.Add(IndexState(nil, 1, 9))
	f.Add(List(nil, 1, 'f', "user", 1, ID{1}))
	f.Add(Draft(nil, 1, ID{1}, "user"))
	f.Add(Credential(nil, 'S', strings.Repeat("x", 300)))
	f.Add(append(ReplicaPrefix(nil, 1), 'p'))
	f.Add(append(ReplicaLogPrefix(nil, 1), "vCurrentTerm"...))
	f.Add(append(ReplicaLogPrefix(nil, 1), "l12345678"...))
	f.Add(Schedule(nil, 1, "wf", "s"))
	f.Add(Timer{9, ID{1}, 7, 2}.Key(nil, 1))
	f.Add(Delivery{ID{1}, "hook", 7, 2}.Key(nil, 1))
	f.Add(Attempt(nil, 1, "wf", 9, Delivery{ID{1}, "hook", 7, 2}))
	f.Add(Incident(nil, 1, ID{1}, 7, 2))
	f.Add(TaskDraft(nil, 1, ID{1}, 7, 2, "user"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, key []byte) {
		k, ok := Parse(key)
		if ok && !bytes.Equal(build(k), key) {
			t.Errorf("%x parses to %+v, which is built as %x", key, k, build(k))
		}
		_, isRecord := RecordID(key)
		assert.Equal(t, ok && k.Table == "record", isRecord, "%x: RecordID, %+v, %t", key, k, ok)
		_, isNode := NodeID(key)
		assert.Equal(t, ok && k.Table == "node", isNode, "%x: NodeID, %+v, %t", key, k, ok)
		_ = k.String()
	})
}
