//go:build mut_nosync

package storetest_test

const mutant = true
