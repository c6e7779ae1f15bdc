// Package backup keeps moments of a home outside of it: in one file, or in a target, which is a folder or a bucket, and
// brings one back.
//
//	store ──Checkpoint──► folder of hard links ─┐
//	home ───────────────► text files ───────────┴─► objects/ab/abcdef…   what the target does not have yet
//	                                                 moments/TIME.json    the last step: this file is the backup
//
// A backup is its index: a list of files with their sizes and SHA-256. In a target the content of a file is an object
// that is named by its sum, so that what two backups share is there once, and a run copies what is new: Pebble never
// changes a table. In one FILE (a tar.zst) the index comes first, then the contents; the file gets its name last.
//
// # Crashes
//
// What a run writes has a temporary name, or none that an index names, until its index is durable under its final name.
// A killed run leaves temporary files and objects that no index names; the next one removes both. A run has the target
// to itself (Target.Lock), so that none removes what another is about to name.
//
// # Damage
//
// Each index has its own sum, and everything that is read is compared with the sums of the index. What does not fit is
// ErrDamaged, with the file and the reason, and nothing of it is taken.
//
// The package knows neither the rules of actors nor the command line: who restores a store says what else is to be done
// with it before it is used (cmd/internal/backup).
package backup
