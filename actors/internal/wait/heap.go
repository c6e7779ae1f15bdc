package wait

import (
	"container/heap"
	"time"
)

// Heap has values in the order of their times. Its zero value has none.
type Heap[T Timed] struct{ of timedHeap[T] }

// Timed is what stands in a Heap. Place is where it keeps its own place, which is the heap's alone and begins with -1.
type Timed interface {
	comparable
	Time() time.Time
	Place() *int
}

// Put adds a value, or has one that is there come to its time. first: it is the earliest.
func (h *Heap[T]) Put(v T) (first bool) {
	if *v.Place() >= 0 {
		heap.Fix(&h.of, *v.Place())
	} else {
		heap.Push(&h.of, v)
	}
	return *v.Place() == 0
}

// Remove removes a value, if it is there.
func (h *Heap[T]) Remove(v T) {
	if at := *v.Place(); at >= 0 && at < len(h.of) && h.of[at] == v {
		heap.Remove(&h.of, at)
	}
	*v.Place() = -1
}

// First is the earliest value. There must be one.
func (h *Heap[T]) First() T { return h.of[0] }

// Len is how many there are.
func (h *Heap[T]) Len() int { return len(h.of) }

type timedHeap[T Timed] []T

func (h timedHeap[T]) Len() int           { return len(h) }
func (h timedHeap[T]) Less(i, j int) bool { return h[i].Time().Before(h[j].Time()) }
func (h timedHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].Place(), *h[j].Place() = i, j
}

// Push implements heap.Interface.
func (h *timedHeap[T]) Push(v any) {
	of := v.(T) //nolint:forcetypeassert // only these are in it
	*of.Place() = len(*h)
	*h = append(*h, of)
}

// Pop implements heap.Interface.
func (h *timedHeap[T]) Pop() any {
	var none T
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = none
	*h = (*h)[:len(*h)-1]
	return last
}
