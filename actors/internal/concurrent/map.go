// Package concurrent has the map that goroutines share, as an interface: of a generic type Go compiles all methods once
// more in each package that sees a struct with one, and an xsync.Map has many.
package concurrent

import "github.com/puzpuzpuz/xsync/v4"

// Map is what is used of an xsync.Map, whose NewMap makes one.
type Map[K comparable, V any] interface {
	Load(key K) (value V, ok bool)
	Store(key K, value V)
	LoadOrStore(key K, value V) (actual V, loaded bool)
	LoadAndDelete(key K) (value V, loaded bool)
	Compute(key K, change func(old V, loaded bool) (V, xsync.ComputeOp)) (actual V, ok bool)
	Delete(key K)
	Range(yield func(K, V) bool)
	Size() int
	Clear()
}
