// Package storetest has disks in memory that hang, fill up and lose power, for tests of what stands on a store.
package storetest
