//go:build !mut_nosync

package storetest_test

// mutant is whether the store under test was built to acknowledge early.
const mutant = false
