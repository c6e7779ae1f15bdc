// Package key is the layout of a store's keys: which bytes name which row, how ids and shards lie in them, and how a
// key is taken apart again. No other package builds a key. It knows neither the store nor what the values are.
package key

import (
	"encoding/binary"
	"math/bits"
)

// ID is the identity of one instance: 128 bits, ordered by its bytes.
type ID [16]byte

// Shard is one of the key ranges that a store is cut into. Every key begins with its shard, so a shard is one
// contiguous range that can be copied, moved or counted on its own.
type Shard uint16

// Meta is the shard of definitions, settings and credentials. It sorts behind all numbered shards.
const Meta Shard = 0xFFFF

// Messages and Copies are the numbers of streams between nodes, which have numbers as shards have.
const (
	Messages Shard = 0xFFFE
	Copies   Shard = 0xFFFD
)

// replicaLog begins the keys of the logs of shards with replicas. They stand outside their shards, so that a copy of a
// shard does not have them. It sorts behind all numbered shards.
const replicaLog Shard = 0xFFFD

// table is the third byte of every key: which kind of row this is. The letters are part of the on-disk format.
type table byte

const (
	replicaTable    table = 'a' // name                      -> how far this replica is
	taskTable       table = 'b' // id, sequence, number      -> open task, or one that was decided
	countTable      table = 'c' // workflow, version         -> sum of int64 (merged)
	definitionTable table = 'd' // workflow, version         -> definition
	entryTable      table = 'e' // id, sequence              -> history entry
	draftTable      table = 'f' // id, user                  -> draft
	feedTable       table = 'g' // place                     -> row of the feed
	workTable       table = 'h' // list, name, order, value, id, sequence, number -> workflow; of upper-case lists it follows order
	indexTable      table = 'i' // index, value, id          -> index entry
	indexStateTable table = 'j' // index                     -> how far the index is in the shard
	replyTable      table = 'k' // scope, key                -> first answer
	bulkTable       table = 'l' // job                       -> how far a bulk job is in the shard
	activityTable   table = 'm' // id, sequence, number      -> what happened beside the history
	nodeTable       table = 'n' // workflow, node, machine, id -> index entry
	deliveryTable   table = 'o' // id, queue, sequence, number -> delivery
	listTable       table = 'p' // list, user, when, id      -> what the list shows
	attemptTable    table = 'q' // workflow, queue, when, id, sequence, number -> nothing
	recordTable     table = 'r' // workflow, id              -> record
	settingTable    table = 's' // name                      -> setting
	credentialTable table = 't' // kind, id                  -> credential
	taskDraftTable  table = 'u' // id, sequence, number, user -> draft
	doneTable       table = 'v' // workflow, when, id        -> nothing
	timerTable      table = 'w' // deadline, id, sequence, number -> workflow
	incidentTable   table = 'x' // id, sequence, number      -> incident
	scheduleTable   table = 'y' // workflow, name            -> what happened to the schedule's runs
	doneTimeTable   table = 'z' // id                        -> when it was done
	// All small letters are taken. Those of replicas come first in their shard.
	auditTable    table = '{' // number                    -> row of the audit log
	businessTable table = '|' // workflow, name            -> instance
	jobTable      table = '}' // kind, id, sequence, number -> job or its end; offers have type, priority, workflow and time behind the kind
	exportTable   table = '~' // name                      -> how far the export is
)

// longText marks a text of 255 bytes or more: two length bytes follow.
const longText = 0xFF

// maxText is the longest text that a key takes, in bytes.
const maxText = 1<<16 - 1

// Record appends the key of an instance's record to dst.
func Record(dst []byte, sh Shard, workflow string, id ID) []byte {
	return append(RecordPrefix(dst, sh, workflow), id[:]...)
}

// RecordPrefix appends the prefix of all records of a workflow in sh; they follow each other in the order of their ids.
func RecordPrefix(dst []byte, sh Shard, workflow string) []byte {
	return appendText(RecordsPrefix(dst, sh), workflow)
}

// RecordsPrefix appends the prefix of all records in sh, workflow after workflow.
func RecordsPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, recordTable) }

// Entry appends the key of history entry seq of an instance to dst.
func Entry(dst []byte, sh Shard, id ID, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(EntryPrefix(dst, sh, id), seq)
}

// EntryPrefix appends the prefix of all history entries of an instance; they
// follow each other in the order of their sequence numbers.
func EntryPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(EntriesPrefix(dst, sh), id[:]...)
}

// EntriesPrefix appends the prefix of all history entries in sh, in the order of the instances.
func EntriesPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, entryTable) }

// Node appends the key that says that machine of instance id is in node.
func Node(dst []byte, sh Shard, workflow, node, machine string, id ID) []byte {
	return append(MachinePrefix(dst, sh, workflow, node, machine), id[:]...)
}

// MachinePrefix appends the prefix of all instances of a workflow whose machine
// is in node; they follow each other in the order of their ids.
func MachinePrefix(dst []byte, sh Shard, workflow, node, machine string) []byte {
	return appendText(NodePrefix(dst, sh, workflow, node), machine)
}

// NodePrefix appends the prefix of all instances of a workflow that are in node, machine after machine. An instance
// shows up once for each of its machines that is there.
func NodePrefix(dst []byte, sh Shard, workflow, node string) []byte {
	return appendText(appendText(appendHead(dst, sh, nodeTable), workflow), node)
}

// Index appends the key that says that instance id has value in a declared
// index. No value of an index may be a prefix of another.
func Index(dst []byte, sh Shard, index uint32, value []byte, id ID) []byte {
	return append(append(IndexPrefix(dst, sh, index), value...), id[:]...)
}

// IndexPrefix appends the prefix of all entries of a declared index in sh, in
// the order of their values, and of their ids where the values are the same.
func IndexPrefix(dst []byte, sh Shard, index uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHead(dst, sh, indexTable), index)
}

// IndexState appends the key of how far a declared index is in sh; 0 is not an index, and has what else leaders of the shard must know. Only shards with
// replicas have such rows.
func IndexState(dst []byte, sh Shard, index uint32) []byte {
	return binary.BigEndian.AppendUint32(IndexStatePrefix(dst, sh), index)
}

// IsOfReplicas says whether a standalone store has no use for a row of one with replicas: those of replicas, and of declared
// indexes, whose entries nobody maintains where no row of the shard says how far the index is.
func IsOfReplicas(k []byte) bool {
	t := table(k[2])
	return t == replicaTable || t == indexTable || t == indexStateTable
}

// IndexStatePrefix appends the prefix of how far all declared indexes are in sh, in the order of their numbers.
func IndexStatePrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, indexStateTable) }

// InstancePrefixes returns the prefixes of all rows that belong to an instance and begin with
// its id: anyone who deletes it removes them. A table of such rows has its line here.
func InstancePrefixes(sh Shard, id ID) [][]byte {
	return [][]byte{
		EntryPrefix(nil, sh, id),
		DraftPrefix(nil, sh, id),
		ReplyPrefix(nil, sh, id),
		DeliveryPrefix(nil, sh, id),
		append(IncidentPrefix(nil, sh), id[:]...),
		TaskPrefix(nil, sh, id),
		TaskDraftsPrefix(nil, sh, id),
		ActivityPrefix(nil, sh, id),
		DoneTime(nil, sh, id),
		jobPrefix(sh, id),
	}
}

// Draft appends the key of what user has written for instance id and not sent.
func Draft(dst []byte, sh Shard, id ID, user string) []byte {
	return appendText(DraftPrefix(dst, sh, id), user)
}

// DraftPrefix appends the prefix of all drafts for an instance.
func DraftPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(appendHead(dst, sh, draftTable), id[:]...)
}

// Reply appends the key of a remembered answer. scope is the instance, or
// the zero ID for creates; key is a digest of caller and idempotency key.
func Reply(dst []byte, sh Shard, scope ID, key [16]byte) []byte {
	return append(ReplyPrefix(dst, sh, scope), key[:]...)
}

// ReplyPrefix appends the prefix of all remembered answers of scope.
func ReplyPrefix(dst []byte, sh Shard, scope ID) []byte {
	return append(appendHead(dst, sh, replyTable), scope[:]...)
}

// Timer is a timer of an instance as keys name it: its deadline in Unix milliseconds, 0 or later, and what tells
// it from the others of the instance.
type Timer struct {
	Due      int64
	ID       ID
	Sequence uint64
	Number   uint32
}

// Key appends the key of a timer that is pending.
func (t Timer) Key(dst []byte, sh Shard) []byte {
	dst = append(appendPlace(TimerPrefix(dst, sh), t.Due), t.ID[:]...)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, t.Sequence), t.Number)
}

// TimerPrefix appends the prefix of all timers in sh, in the order of their deadlines.
func TimerPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, timerTable) }

// TimePlace is the place of the first key of a time in Unix milliseconds: of timers behind TimerPrefix, and of attempts behind
// StreamPrefix.
func TimePlace(due int64) []byte { return appendPlace(nil, due) }

func appendPlace(dst []byte, due int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(max(due, 0)))
}

// PlaceTime is the time of a place.
func PlaceTime(place []byte) int64 { return int64(binary.BigEndian.Uint64(place)) }

// Delivery is what an instance sends out, as keys name it: in the order of the history entries that sent it, and
// among those of one entry in the order of their numbers, for each instance and queue.
type Delivery struct {
	ID       ID
	Queue    string
	Sequence uint64
	Number   uint32
}

// Key appends the key of a delivery.
func (d Delivery) Key(dst []byte, sh Shard) []byte {
	return d.appendEnd(DeliveryQueuePrefix(dst, sh, d.ID, d.Queue))
}

func (d Delivery) appendEnd(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, d.Sequence), d.Number)
}

// DeliveryQueuePrefix appends the prefix of one queue of an instance.
func DeliveryQueuePrefix(dst []byte, sh Shard, id ID, queue string) []byte {
	return appendText(DeliveryPrefix(dst, sh, id), queue)
}

// DeliveryPrefix appends the prefix of all deliveries of an instance.
func DeliveryPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(DeliveriesPrefix(dst, sh), id[:]...)
}

// DeliveriesPrefix appends the prefix of all deliveries in sh.
func DeliveriesPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, deliveryTable) }

// Attempt appends the key of the next attempt of a delivery, at a time in Unix milliseconds, 0 or later.
func Attempt(dst []byte, sh Shard, workflow string, when int64, d Delivery) []byte {
	dst = append(appendPlace(StreamPrefix(dst, sh, workflow, d.Queue), when), d.ID[:]...)
	return d.appendEnd(dst)
}

// StreamPrefix appends the prefix of the next attempts of all deliveries of a workflow's instances in a queue, in the
// order of their times.
func StreamPrefix(dst []byte, sh Shard, workflow, queue string) []byte {
	return appendText(appendText(StreamsPrefix(dst, sh), workflow), queue)
}

// StreamsPrefix appends the prefix of all next attempts in sh.
func StreamsPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, attemptTable) }

// Incident appends the key of an event of instance id that came on its own and failed.
func Incident(dst []byte, sh Shard, id ID, sequence uint64, number uint32) []byte {
	dst = append(IncidentPrefix(dst, sh), id[:]...)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, sequence), number)
}

// IncidentPrefix appends the prefix of all incidents in sh, in the order of the instances.
func IncidentPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, incidentTable) }

// Schedule appends the key of a schedule of a workflow, in the shard that it belongs to.
func Schedule(dst []byte, sh Shard, workflow, name string) []byte {
	return appendText(appendText(SchedulePrefix(dst, sh), workflow), name)
}

// Export appends the key of how far an export is in sh.
func Export(dst []byte, sh Shard, name string) []byte {
	return appendText(appendHead(dst, sh, exportTable), name)
}

// SchedulePrefix appends the prefix of all schedules in sh.
func SchedulePrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, scheduleTable) }

// Task appends the key of a task of instance id, which is open or was decided. The zero ID has none, and its key says that
// all instances of the shard have written their tasks.
func Task(dst []byte, sh Shard, id ID, sequence uint64, number uint32) []byte {
	return appendPart(append(appendHead(dst, sh, taskTable), id[:]...), sequence, number)
}

// TaskPrefix appends the prefix of the tasks of an instance.
func TaskPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(appendHead(dst, sh, taskTable), id[:]...)
}

// TaskDraft appends the key of what user has written for a task of instance id and not sent.
func TaskDraft(dst []byte, sh Shard, id ID, sequence uint64, number uint32, user string) []byte {
	return appendText(TaskDraftPrefix(dst, sh, id, sequence, number), user)
}

// TaskDraftPrefix appends the prefix of all drafts for a task.
func TaskDraftPrefix(dst []byte, sh Shard, id ID, sequence uint64, number uint32) []byte {
	return appendPart(TaskDraftsPrefix(dst, sh, id), sequence, number)
}

// TaskDraftsPrefix appends the prefix of all drafts for the tasks of an instance.
func TaskDraftsPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(appendHead(dst, sh, taskDraftTable), id[:]...)
}

// Activity appends the key of something that happened to an instance behind a history entry, and that is not an entry itself.
func Activity(dst []byte, sh Shard, id ID, sequence uint64, number uint32) []byte {
	return appendPart(ActivityPrefix(dst, sh, id), sequence, number)
}

// ActivityPrefix appends the prefix of all of that, in the order in which it happened.
func ActivityPrefix(dst []byte, sh Shard, id ID) []byte {
	return append(appendHead(dst, sh, activityTable), id[:]...)
}

func appendPart(dst []byte, sequence uint64, number uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, sequence), number)
}

// Work is a task in one of the worklists, as keys name it. List is the caller's letter for the sort of list, and Name whose
// it is; Order is the letter of what the list is sorted by, and Value the task's. A list with an upper-case letter has the tasks of each workflow on
// their own: keys of others have no Workflow.
type Work struct {
	List     byte
	Name     string
	Order    byte
	Workflow string
	Value    uint64
	ID       ID
	Sequence uint64
	Number   uint32
}

// Key appends the key of a task in a worklist.
func (w *Work) Key(dst []byte, sh Shard) []byte {
	dst = WorkPrefix(dst, sh, w.List, w.Name, w.Order)
	if isByWorkflow(w.List) {
		dst = appendText(dst, w.Workflow)
	}
	dst = binary.BigEndian.AppendUint64(dst, w.Value)
	return appendPart(append(dst, w.ID[:]...), w.Sequence, w.Number)
}

func isByWorkflow(list byte) bool { return 'A' <= list && list <= 'Z' }

// WorkPrefix appends the prefix of a worklist in one order: by value, and where that is the same by instance; of an upper-case list workflow after
// workflow.
func WorkPrefix(dst []byte, sh Shard, list byte, name string, order byte) []byte {
	return append(WorkListPrefix(dst, sh, list, name), order)
}

// WorkListPrefix appends the prefix of a worklist in all orders.
func WorkListPrefix(dst []byte, sh Shard, list byte, name string) []byte {
	return appendText(append(WorksPrefix(dst, sh), list), name)
}

// WorksPrefix appends the prefix of all worklists.
func WorksPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, workTable) }

// Count appends the key of a counter: the instances of one version of a
// workflow in sh. Counters are summed up, and never overwritten.
func Count(dst []byte, sh Shard, workflow string, version uint64) []byte {
	return binary.BigEndian.AppendUint64(CountPrefix(dst, sh, workflow), version)
}

// CountPrefix appends the prefix of the counters of a workflow in sh, in the order of its versions.
func CountPrefix(dst []byte, sh Shard, workflow string) []byte {
	return appendText(CountsPrefix(dst, sh), workflow)
}

// CountsPrefix appends the prefix of all counters in sh.
func CountsPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, countTable) }

// Definition appends the key of one version of a definition, in [Meta].
func Definition(dst []byte, workflow string, version uint64) []byte {
	return binary.BigEndian.AppendUint64(DefinitionPrefix(dst, workflow), version)
}

// DefinitionPrefix appends the prefix of all versions of one definition, in their order.
func DefinitionPrefix(dst []byte, workflow string) []byte {
	return appendText(DefinitionsPrefix(dst), workflow)
}

// DefinitionsPrefix appends the prefix of all definitions.
func DefinitionsPrefix(dst []byte) []byte { return appendHead(dst, Meta, definitionTable) }

// Setting appends the key of a named setting, in [Meta].
func Setting(dst []byte, name string) []byte {
	return appendText(SettingsPrefix(dst), name)
}

// SettingsPrefix appends the prefix of all settings.
func SettingsPrefix(dst []byte) []byte { return appendHead(dst, Meta, settingTable) }

// Credential appends the key of a credential, in [Meta]. kind is the caller's letter for the sort of credential.
func Credential(dst []byte, kind byte, id string) []byte {
	return appendText(CredentialPrefix(dst, kind), id)
}

// CredentialPrefix appends the prefix of all credentials of one kind.
func CredentialPrefix(dst []byte, kind byte) []byte {
	return append(appendHead(dst, Meta, credentialTable), kind)
}

// Audit appends the key of a row of the audit log, in [Meta]; they follow each other in the order of their numbers.
func Audit(dst []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(AuditPrefix(dst), number)
}

// AuditPrefix appends the prefix of all rows of the audit log.
func AuditPrefix(dst []byte) []byte { return appendHead(dst, Meta, auditTable) }

// ReplicaPrefix appends the prefix of the rows that say how far the replica of sh is.
// They are the first of the shard, and are copied with it.
func ReplicaPrefix(dst []byte, sh Shard) []byte { return appendHead(dst, sh, replicaTable) }

// ReplicaLogPrefix appends the prefix of the log of sh.
func ReplicaLogPrefix(dst []byte, sh Shard) []byte {
	return ShardPrefix(ReplicaPrefix(dst, replicaLog), sh)
}

// ShardPrefix appends the prefix of everything in sh.
func ShardPrefix(dst []byte, sh Shard) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(sh))
}

// ShardEnd appends a key behind everything in sh: the byte behind the number of the shard is a
// letter. It is one for Meta too, which [PrefixEnd] has none for.
func ShardEnd(dst []byte, sh Shard) []byte { return append(ShardPrefix(dst, sh), 0xFF) }

// PrefixEnd returns the first key behind all keys that begin with prefix, in new storage. It is nil, which means no
// bound, when prefix is empty or made of 0xFF only.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] == 0xFF {
			continue
		}
		end := append([]byte(nil), prefix[:i+1]...)
		end[i]++
		return end
	}
	return nil
}

// IsCount says whether a key is that of a counter.
func IsCount(key []byte) bool { return isOf(key, countTable) }

// IsReply says whether a key is that of a remembered answer.
func IsReply(key []byte) bool { return isOf(key, replyTable) }

func isOf(key []byte, t table) bool { return len(key) > shardBytes && table(key[shardBytes]) == t }

func appendHead(dst []byte, sh Shard, t table) []byte {
	return append(dst, byte(sh>>8), byte(sh), byte(t))
}

// appendText appends s behind its length. Texts shorter than 255 bytes have one
// length byte; a longer one has 0xFF and two. No text is a prefix of another.
func appendText(dst []byte, s string) []byte {
	if len(s) < longText {
		return append(append(dst, byte(len(s))), s...)
	}
	if len(s) > maxText {
		panic("key: text of more than 65535 bytes in a key")
	}
	return append(append(dst, longText, byte(len(s)>>8), byte(len(s))), s...)
}

// Shard returns the shard of an instance in a store with n of them. It is part of the on-disk
// format: a stored instance is found again only as long as this never changes.
func (id ID) Shard(n int) Shard {
	hi, lo := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	const odd = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	h := (hi ^ bits.RotateLeft64(lo, 32)) * odd
	h = (h ^ h>>32) * odd
	return Shard((h >> 32) * uint64(n) >> 32)
}
