//go:build !mut_nosync

package endtoend

// ownTags are the build tags of the test that change the program; it is built
// with the same ones.
const ownTags = ""
