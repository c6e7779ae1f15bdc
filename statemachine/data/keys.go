package data

import (
	"encoding/binary"
	"math/bits"
)

// Most objects have a few keys, and comparing each new one with all before it is the fastest. Above fewKeys that would be
// quadratic, and an object of 100,000 keys would cost minutes; then the keys go into a map.
const fewKeys = 32

type key struct {
	start, end int // where its raw text is in scanner.src
	// mark is the same for equal texts, and different for most others.
	mark uint64
}

type keySet struct {
	few []key
	// many holds them all, decoded, once there are more than fewKeys.
	many map[string]struct{}
}

// addKey returns the set of an object's keys with the key at src[start:end]. It reports false, with the error set, when the
// object has that key already. NB: the set is passed by value so that its first keys stay on the stack.
func (s *scanner) addKey(set keySet, start, end int, escaped bool) (keySet, bool) {
	if set.many != nil {
		return set, s.addToMap(set.many, start, end, escaped)
	}
	raw := s.src[start:end]
	k := key{start: start, end: end}
	if escaped {
		k.mark = mark([]byte(decode(raw)))
	} else {
		k.mark = mark(raw)
	}
	for _, other := range set.few {
		if other.mark == k.mark && equalRaw(s.src[other.start:other.end], raw) {
			return set, s.duplicate(start, end)
		}
	}
	set.few = append(set.few, k)
	if len(set.few) > fewKeys {
		set.many = make(map[string]struct{}, 4*fewKeys)
		for _, k := range set.few {
			set.many[decode(s.src[k.start:k.end])] = struct{}{}
		}
	}
	return set, true
}

func (s *scanner) addToMap(keys map[string]struct{}, start, end int, escaped bool) bool {
	if s.text == "" {
		s.text = string(s.src) // one allocation instead of one for each key
	}
	text := s.text[start:end]
	if escaped {
		text = decode(s.src[start:end])
	}
	// NB: one look at the map instead of two.
	before := len(keys)
	keys[text] = struct{}{}
	if len(keys) == before {
		return s.duplicate(start, end)
	}
	return true
}

func (s *scanner) duplicate(start, end int) bool {
	s.fail(start-1, "duplicate key "+Quote(decode(s.src[start:end])))
	return false
}

// mark mixes the length with the first and the last bytes.
func mark(text []byte) uint64 {
	n := len(text)
	var first, last uint64
	switch {
	case n >= 8:
		first = binary.LittleEndian.Uint64(text)
		last = binary.LittleEndian.Uint64(text[n-8:])
	case n >= 4:
		first = uint64(binary.LittleEndian.Uint32(text))
		last = uint64(binary.LittleEndian.Uint32(text[n-4:]))
	case n > 0:
		first = uint64(text[0])
		last = uint64(text[n/2])<<8 | uint64(text[n-1])
	}
	return first ^ bits.RotateLeft64(last, 29) ^ uint64(n)<<56
}
