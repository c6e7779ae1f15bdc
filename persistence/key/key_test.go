package key

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

// fields are the parts of a key by their letters in a layout.
var fields = map[rune]string{
	'w': "Workflow", 'W': "Workflow", 'N': "Node", 'm': "Machine", 'n': "Name", 'i': "ID", 'r': "Reply", 'q': "Number", 't': "Number", 'x': "Number",
	'p': "Place", 's': "Sorted", 'd': "Due", 'k': "Kind", 'o': "Order", 'V': "Value",
}

// drawKey draws the parts of a key of any table.
func drawKey(t *rapid.T, label string) Parts {
	tables := slices.DeleteFunc(slices.Sorted(maps.Keys(layouts)), func(t table) bool { return t == replicaTable })
	// Short alphabets make near misses likely: one name a prefix of another, a
	// byte that looks like a length.
	text := rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'b', 1, 2, 0, 'ÿ'}), 0, 3, -1)
	long := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("a", rapid.SampledFrom([]int{1, 253, 254, 255, 256, 300}).Draw(t, "length"))
	})
	names := rapid.OneOf(text, text, text, long)
	name := func(what string) string { return names.Draw(t, label+" "+what) }
	array := func(what string) (b [16]byte) {
		copy(b[:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xFF}), 16, 16).Draw(t, label+" "+what))
		return b
	}
	number := func(what string) uint64 {
		return rapid.SampledFrom([]uint64{0, 1, 255, 256, 1<<64 - 1}).Draw(t, label+" "+what)
	}
	at := rapid.SampledFrom(tables).Draw(t, label+" table")
	k := Parts{Table: layouts[at].name, Shard: Shard(rapid.SampledFrom([]int{0, 1, 255, 256, 0xFFFF}).Draw(t, label+" shard"))}
	if at == definitionTable || at == settingTable || at == credentialTable || at == auditTable {
		k.Shard = Meta
	}
	drawn := Parts{
		Workflow: name("workflow"), Node: name("node"), Machine: name("machine"), ID: array("id"), Reply: array("reply"),
		Value:  string(appendText(nil, name("value"))), // no value is a prefix of another
		Number: number("number"), Due: int64(number("due") >> 1), Place: uint32(number("place")), Sorted: number("sorted"),
		Order: rapid.Byte().Draw(t, label+" order"), Name: name("name"), Kind: rapid.SampledFrom([]byte("aMzR\x00\xff")).Draw(t, label+" kind"),
	}
	for _, part := range layouts[at].parts {
		switch {
		case part == 'J':
			k.Kind = rapid.SampledFrom([]byte{JobRow, JobOffer}).Draw(t, label+" kind of job")
			k.ID, k.Number, k.Place = drawn.ID, drawn.Number, drawn.Place
			if k.Kind == JobOffer {
				k.Name, k.Order, k.Workflow, k.Due = drawn.Name, drawn.Order, drawn.Workflow, drawn.Due
			}
			continue
		case part == 'x': // an index has 32 bits
			drawn.Number = uint64(uint32(drawn.Number))
		case part == 'W' && !isByWorkflow(drawn.Kind):
			continue
		}
		to := reflect.ValueOf(&k).Elem().FieldByName(fields[part])
		to.Set(reflect.ValueOf(drawn).FieldByName(fields[part]))
	}
	return k
}

// covers is a prefix of keys, and what those that it covers have in common beside their table and shard.
type covers struct {
	prefix []byte
	common func(k Parts) any
}

func anyOf(Parts) any { return nil }

func idOf(k Parts) any { return k.ID }

func workflowOf(k Parts) any { return k.Workflow }

// built is the key of some parts, and the prefixes that cover it.
func built(k Parts) (key []byte, prefixes []covers) {
	sh, id := k.Shard, k.ID
	delivery := Delivery{id, k.Name, k.Number, k.Place}
	switch k.Table {
	case "record":
		return Record(nil, sh, k.Workflow, id), []covers{{RecordPrefix(nil, sh, k.Workflow), workflowOf}}
	case "entry":
		return Entry(nil, sh, id, k.Number), []covers{{EntryPrefix(nil, sh, id), idOf}}
	case "draft":
		return Draft(nil, sh, id, k.Name), []covers{{DraftPrefix(nil, sh, id), idOf}}
	case "list":
		return List(nil, sh, k.Kind, k.Name, int64(k.Number), id), []covers{{ListPrefix(nil, sh, k.Kind, k.Name), func(k Parts) any { return [2]any{k.Kind, k.Name} }}}
	case "node":
		return Node(nil, sh, k.Workflow, k.Node, k.Machine, id), []covers{
			{NodePrefix(nil, sh, k.Workflow, k.Node), func(k Parts) any { return [2]any{k.Workflow, k.Node} }},
			{MachinePrefix(nil, sh, k.Workflow, k.Node, k.Machine), func(k Parts) any { return [3]any{k.Workflow, k.Node, k.Machine} }},
		}
	case "index":
		return Index(nil, sh, uint32(k.Number), []byte(k.Value), id), []covers{{IndexPrefix(nil, sh, uint32(k.Number)), func(k Parts) any { return k.Number }}}
	case "indexstate":
		return IndexState(nil, sh, uint32(k.Number)), []covers{{IndexStatePrefix(nil, sh), anyOf}}
	case "reply":
		return Reply(nil, sh, id, k.Reply), []covers{{ReplyPrefix(nil, sh, id), idOf}}
	case "count":
		return Count(nil, sh, k.Workflow, k.Number), []covers{{CountPrefix(nil, sh, k.Workflow), workflowOf}, {CountsPrefix(nil, sh), anyOf}}
	case "definition":
		return Definition(nil, k.Workflow, k.Number), []covers{{DefinitionPrefix(nil, k.Workflow), workflowOf}}
	case "setting":
		return Setting(nil, k.Name), []covers{{SettingsPrefix(nil), anyOf}}
	case "credential":
		return Credential(nil, k.Kind, k.Name), []covers{{CredentialPrefix(nil, k.Kind), func(k Parts) any { return k.Kind }}}
	case "schedule":
		return Schedule(nil, sh, k.Workflow, k.Name), []covers{{SchedulePrefix(nil, sh), anyOf}}
	case "done":
		return Done(nil, sh, k.Workflow, k.Due, id), []covers{{DonePrefix(nil, sh, k.Workflow), workflowOf}}
	case "donetime":
		return DoneTime(nil, sh, id), []covers{{DoneTime(nil, sh, id), idOf}}
	case "audit":
		return Audit(nil, k.Number), []covers{{AuditPrefix(nil), anyOf}}
	case "bulk":
		return Bulk(nil, sh, k.Reply), []covers{{BulkPrefix(nil, sh), anyOf}}
	case "business":
		return Business(nil, sh, k.Workflow, k.Name), nil
	case "export":
		return Export(nil, sh, k.Name), []covers{{appendHead(nil, sh, exportTable), anyOf}}
	case "job":
		j := Job{id, k.Number, k.Place}
		if k.Kind == JobOffer {
			return (&Offer{k.Name, k.Order, k.Workflow, k.Due, j}).Key(nil, sh), []covers{
				{OffersPrefix(nil, sh, k.Name), func(k Parts) any { return [2]any{k.Kind, k.Name} }},
				{OfferPrefix(nil, sh, k.Name, k.Order, k.Workflow), func(k Parts) any { return [4]any{k.Kind, k.Name, k.Order, k.Workflow} }},
				{JobsPrefix(nil, sh, k.Kind), func(k Parts) any { return k.Kind }},
			}
		}
		return j.Key(nil, sh), []covers{{jobPrefix(sh, id), func(k Parts) any { return [2]any{k.Kind, k.ID} }}, {JobsPrefix(nil, sh, k.Kind), func(k Parts) any { return k.Kind }}}
	case "feed":
		return Feed(nil, sh, FeedPlace(k.Number)), []covers{{FeedPrefix(nil, sh), anyOf}}
	case "timer":
		return Timer{k.Due, id, k.Number, k.Place}.Key(nil, sh), []covers{{TimerPrefix(nil, sh), anyOf}}
	case "incident":
		return Incident(nil, sh, id, k.Number, k.Place), []covers{{IncidentPrefix(nil, sh), anyOf}}
	case "delivery":
		return delivery.Key(nil, sh), []covers{
			{DeliveryPrefix(nil, sh, id), idOf}, {DeliveryQueuePrefix(nil, sh, id, k.Name), func(k Parts) any { return [2]any{k.ID, k.Name} }},
		}
	case "attempt":
		return Attempt(nil, sh, k.Workflow, k.Due, delivery), []covers{{StreamPrefix(nil, sh, k.Workflow, k.Name), func(k Parts) any { return [2]any{k.Workflow, k.Name} }}}
	case "task":
		return Task(nil, sh, id, k.Number, k.Place), []covers{{TaskPrefix(nil, sh, id), idOf}}
	case "taskdraft":
		return TaskDraft(nil, sh, id, k.Number, k.Place, k.Name), []covers{
			{TaskDraftsPrefix(nil, sh, id), idOf}, {TaskDraftPrefix(nil, sh, id, k.Number, k.Place), func(k Parts) any { return [3]any{k.ID, k.Number, k.Place} }},
		}
	case "activity":
		return Activity(nil, sh, id, k.Number, k.Place), []covers{{ActivityPrefix(nil, sh, id), idOf}}
	case "work":
		return (&Work{k.Kind, k.Name, k.Order, k.Workflow, k.Sorted, id, k.Number, k.Place}).Key(nil, sh), []covers{
			{WorkPrefix(nil, sh, k.Kind, k.Name, k.Order), func(k Parts) any { return [3]any{k.Kind, k.Name, k.Order} }},
			{WorkListPrefix(nil, sh, k.Kind, k.Name), func(k Parts) any { return [2]any{k.Kind, k.Name} }},
		}
	}
	switch k.Kind {
	case 'l':
		return binary.BigEndian.AppendUint64(append(ReplicaLogPrefix(nil, sh), 'l'), k.Number), nil
	case 'b', 'c', 'd', 'h', 'k':
		return append(ReplicaLogPrefix(nil, sh), k.Kind), nil
	}
	return append(ReplicaPrefix(nil, sh), k.Kind), nil
}

func build(k Parts) []byte {
	key, _ := built(k)
	return key
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
		_, prefixes := built(a)
		for _, c := range prefixes {
			same := a.Table == b.Table && a.Shard == b.Shard && c.common(a) == c.common(b)
			key, end := build(b), PrefixEnd(c.prefix)
			inRange := bytes.Compare(c.prefix, key) <= 0 && (end == nil || bytes.Compare(key, end) < 0)
			require.True(t, inRange == same && bytes.HasPrefix(key, c.prefix) == same, "%v %v %v %v %v", a, c.prefix, b, key, inRange)
		}
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
		"offers by priority, the highest first, then workflow, then time": {
			(&Offer{"t", 100, "b", 9, Job{ID: id(1)}}).Key(nil, 3), (&Offer{"t", 50, "a", 300, Job{ID: id(1)}}).Key(nil, 3), (&Offer{"t", 50, "b", 1, Job{ID: id(2)}}).Key(nil, 3),
			(&Offer{"t", 50, "b", 256, Job{ID: id(1)}}).Key(nil, 3), (&Offer{"t", 0, "a", 1, Job{ID: id(1)}}).Key(nil, 3), (&Offer{"u", 100, "a", 1, Job{ID: id(1)}}).Key(nil, 3),
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
		"ffff7b" + "0000000000000007":                                                      Audit(nil, 7),
		"ffff73" + "0178":                                                                  Setting(nil, "x"),
		"ffff74" + "54" + "0178":                                                           Credential(nil, 'T', "x"),
		"000377" + "0000000000000009" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002":                                   Timer{9, id, 7, 2}.Key(nil, 3),
		"00037d" + "6a" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002":                                                 Job{id, 7, 2}.Key(nil, 3),
		"00037d" + "6f" + "0174" + "9b" + "027766" + "0000000000000009" + "0102030405060708090a0b0c0d0e0f10" + "0000000000000007" + "00000002": (&Offer{"t", 100, "wf", 9, Job{id, 7, 2}}).Key(nil, 3),
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
		j, ok := ParseJob(key)
		require.True(t, ok == (k.Table == "job" && k.Kind != JobOffer) && (!ok || j == Job{k.ID, k.Number, k.Place}), "ParseJob of %+v: got %+v, %t", k, j, ok)
		o, ok := ParseOffer(key)
		require.True(t, ok == (k.Table == "job" && k.Kind == JobOffer) && (!ok || o == Offer{k.Name, k.Order, k.Workflow, k.Due, Job{k.ID, k.Number, k.Place}}), "ParseOffer of %+v: got %+v, %t", k, o, ok)
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
	f.Add(append(ReplicaLogPrefix(nil, 1), 'h'))
	f.Add(append(ReplicaLogPrefix(nil, 1), "l12345678"...))
	f.Add(Schedule(nil, 1, "wf", "s"))
	f.Add(Timer{9, ID{1}, 7, 2}.Key(nil, 1))
	f.Add(Delivery{ID{1}, "hook", 7, 2}.Key(nil, 1))
	f.Add(Attempt(nil, 1, "wf", 9, Delivery{ID{1}, "hook", 7, 2}))
	f.Add(Incident(nil, 1, ID{1}, 7, 2))
	f.Add(Job{ID{1}, 7, 2}.Key(nil, 1))
	f.Add((&Offer{"type", 50, "wf", 9, Job{ID{1}, 7, 2}}).Key(nil, 1))
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
