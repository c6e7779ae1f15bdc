// Package integrity notices when the files of a store are not what was made durable. Pebble alone opens a store after
// most kinds of damage, with a part of its data. Its callers use [Check] before a store is opened for writing, and
// [Record] while it is open.
//
//	Record ──► durability watermark ──► a WAL stamp at the front of each batch
//	                  │
//	                  └──► integrity checkpoint, the file WITNESS, with sizes and
//	                       checksums of MANIFEST, logs and tables
//	                                      │
//	Check  ◄── the files, and what stamps and checkpoint say about them ──► ErrDamaged
//
// # The words
//
// The durability watermark is a pair, a log and a sequence number: every record that ends before the number is durable,
// in this log or a later one. A WAL stamp is the watermark of the moment when a batch was written; it stands in the
// batch, twelve bytes that the database never sees. The integrity checkpoint is a file that is replaced as a whole;
// what it says was durable in the store's files before.
//
// # What Check finds
//
// It reads the MANIFEST and the logs that are live, from the first byte to the last,
// and takes as damage what no crash leaves:
//
//  1. in the MANIFEST, a record behind a hole: each was synced before the next;
//  2. in a log that is not the newest, an end without a trailer: it was closed;
//  3. in the newest log, an end before what a stamp or a sync offset behind the end,
//     or the checkpoint, says was durable;
//  4. a MANIFEST that is shorter or older than the checkpoint says, or another; a log
//     that is missing or too short; a table that is not the one that was written;
//  5. whatever Pebble refuses when it opens the files read-only, and a checksum of a
//     block in the newest tables.
//
// It does not find damage to the end of the newest log, with no whole record left behind it, which looks like a write
// that a crash cut off; nor a whole directory that was replaced by an older copy. The blocks of the other tables are
// checked when they are read, and by CheckTable.
//
// # What the caller must do
//
// Before opening: lock the directory, call Check, and open with the same options.
//
// While open for writing:
//
//  1. call Reserve on each empty batch, NewestLog before it is applied, Stamp at the
//     moment when it is, and Durable once it is synced, in the order of the log;
//  2. call Start before the first batch, LogCreated when Pebble has made a log and
//     before a record is written to it, StructureChanged after flushes, compactions
//     and new MANIFESTs;
//  3. call Stop, close the database, and only when that went well call Close.
//
// Stamp, NewestLog and Durable cost a few atomic operations and allocate nothing. All methods but Start, Stop and Close
// are safe for concurrent use; Durable belongs to one goroutine. A crash at any moment leaves a checkpoint that is true
// of every later state.
package integrity
