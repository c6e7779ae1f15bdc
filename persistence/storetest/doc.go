// Package storetest has disks in memory that hang, fill up and lose power, for tests of what stands on a store. Its own tests
// are what every journal must pass, the store and a group of one replica: a conformance suite, a crash harness and a sweep of
// damaged files. A harness that cannot fail proves nothing, so each is also run against journals with a bug in them.
package storetest
