//go:build !mut_nosync

package persistence

// ackBeforeSync is false in every real build; see mutant_nosync.go.
const ackBeforeSync = false
