//go:build mut_nosync

package endtoend

// ownTags: with this tag the program acknowledges commits before they are
// durable, and TestKill must fail.
const ownTags = "mut_nosync"
