// Package data keeps free-form JSON as the bytes it came in. A [Value] is text that [Clean] has checked once and that is read in place, with its
// key order and its numbers untouched (DESIGN.md has the reasons).
//
// Let nothing become a Value that did not come out of this package: the reading functions do not check again. On other bytes they answer
// nonsense, but neither panic nor loop. A Value is never modified, and a part of one is a slice of the same bytes. Every function takes time
// linear in its input and recurses no deeper than [MaxDepth].
package data
