package data

import "bytes"

// Merge applies a JSON Merge Patch (RFC 7396): members of the patch replace those of target, null removes them, objects merge
// into objects, and a patch that is not an object replaces all. Keys of target keep their place, new ones follow in the patch's
// order. The result is new storage. An absent target is an empty object, an absent patch changes nothing.
func Merge(target, patch Value) Value {
	return merge(target, patch, true)
}

// Overlay puts given over defaults: each member of given replaces the whole member of defaults, and null is a value like others.
// Keys of defaults keep their place, new ones follow in given's order. If only one of the two is an object, the result is that
// one; if neither is, it is given. The result is new storage.
func Overlay(defaults, given Value) Value {
	if given.Kind() != Object && defaults.Kind() == Object {
		return bytes.Clone(defaults)
	}
	return merge(defaults, given, false)
}

// merger applies a patch to a target. The patch is taken apart once, then the target is read once, so the depth of the two does
// not count. NB: the text is appended to a slice that is passed along and not kept in the merger; so the nodes of a small patch
// stay on the stack.
type merger struct {
	// deep merges objects into objects and lets null remove; otherwise members replace each other whole.
	deep bool
	// nodes are the members of the patch's objects, in the order of the text: behind a node are those of its value.
	nodes []patchNode
}

// patchNode is one member of an object of the patch. It is made by takeApart; only used changes afterwards.
type patchNode struct {
	key   []byte // raw, without quotes
	value Value
	// next is the index behind the nodes of this one's value: where the next member of the same object is.
	next int
	// members counts the direct members, for an object that was taken apart.
	members int
	// nulls says that a member of the value, at any depth, is null.
	nulls bool
	// used says that target has the member.
	used bool
}

// merge is Merge when deep is set, and otherwise Overlay. The steps:
//
//  1. Take the patch apart into nodes: one for each member of each of its
//     objects. Arrays and scalars stay whole.
//  2. Walk over target. A member that the patch does not name is copied, together
//     with its neighbours. One that it names is left out, replaced, or walked
//     over in the same way.
//  3. At the end of each object append the nodes that were not used.
//
// Target's bytes and the patch's are each read once. The obvious way, a lookup in target for each member of the patch at each
// level, reads deep values once for each level.
func merge(target, patch Value, deep bool) Value {
	if len(patch) == 0 {
		return bytes.Clone(target)
	}
	if patch.Kind() != Object {
		return bytes.Clone(patch)
	}
	var buf [16]patchNode
	m := merger{deep: deep}
	m.nodes, _ = m.takeApart(append(buf[:0], patchNode{}), patch, 0, 1)
	out := make([]byte, 0, len(target)+len(patch))
	if target.Kind() == Object {
		out, _ = m.merge(out, target, 0, 0)
		return out
	}
	return m.fresh(out, 0)
}

// takeApart appends the nodes of the object at patch[i], which is the value of the last node, and returns the offset behind it.
func (m *merger) takeApart(nodes []patchNode, patch []byte, i, depth int) ([]patchNode, int) {
	n := len(nodes) - 1
	w := members{src: patch, at: i + 1}
	for w.nextKey() {
		child := len(nodes)
		nodes = append(nodes, patchNode{key: w.key, next: child + 1})
		// NB: a Value is not deeper than MaxDepth; other bytes must not cost a stack of their own length.
		if m.deep && depth < MaxDepth && w.at < len(patch) && patch[w.at] == '{' {
			nodes, w.at = m.takeApart(nodes, patch, w.at, depth+1)
		} else {
			end := skip(patch, w.at)
			nodes[child].value = Value(patch[w.at:end])
			w.at = end
		}
		nodes[n].members++
		if nodes[child].nulls || m.removes(&nodes[child]) {
			nodes[n].nulls = true
		}
	}
	end := min(w.at+1, len(patch))
	nodes[n].value = Value(patch[i:end])
	nodes[n].next = len(nodes)
	return nodes, end
}

func (m *merger) removes(p *patchNode) bool {
	return m.deep && p.value.Kind() == Null
}

// merge appends the object at src[i] with node n merged into it, and returns the offset behind it.
func (m *merger) merge(out, src []byte, i, n int) ([]byte, int) {
	out = append(out, '{')
	index := m.index(n)
	left := m.nodes[n].members
	w := members{src: src, at: i + 1}
	from, to := 0, 0 // members that stay as they are and are not written yet
	for w.nextKey() {
		start := w.at - len(w.key) - len(`"":`)
		found := -1
		if left > 0 {
			found = m.find(n, index, w.key)
		}
		if found < 0 {
			w.at = skip(src, w.at)
			if from == to {
				from = start
			}
			to = w.at
			continue
		}
		out = appendMembers(out, src[from:to])
		from, to = 0, 0
		left--
		out, w.at = m.replace(out, src, start, w.at, found)
	}
	out = appendMembers(out, src[from:to])
	if left > 0 {
		out = m.added(out, n)
	}
	return append(out, '}'), min(w.at+1, len(src))
}

// replace appends the member whose key is at src[start] and whose value is at
// src[i] as node n wants it, and returns the offset behind the value.
func (m *merger) replace(out, src []byte, start, i, n int) ([]byte, int) {
	p := &m.nodes[n]
	p.used = true
	if m.removes(p) {
		return out, skip(src, i)
	}
	out = appendMembers(out, src[start:i])
	if m.deep && p.value.Kind() == Object && i < len(src) && src[i] == '{' {
		return m.merge(out, src, i, n)
	}
	return m.fresh(out, n), skip(src, i)
}

// added appends the members of node n that target does not have.
func (m *merger) added(out []byte, n int) []byte {
	for c := n + 1; c < m.nodes[n].next; c = m.nodes[c].next {
		p := &m.nodes[c]
		if p.used || m.removes(p) {
			continue
		}
		out = appendMembers(out, []byte{'"'})
		out = append(out, p.key...)
		out = append(out, '"', ':')
		out = m.fresh(out, c)
	}
	return out
}

// fresh appends the value of node n where target has none to merge it into.
// NB: the nulls inside go even then (RFC 7396, section 2).
func (m *merger) fresh(out []byte, n int) []byte {
	if !m.nodes[n].nulls {
		return append(out, m.nodes[n].value...)
	}
	return append(m.added(append(out, '{'), n), '}')
}

// appendMembers appends the beginning of a member, or some members, with a comma before them where the object has others already.
func appendMembers(out, text []byte) []byte {
	if len(text) == 0 {
		return out
	}
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(out, text...)
}

// index returns the members of node n by their decoded keys when there are many of them, otherwise nil.
func (m *merger) index(n int) map[string]int {
	// NB: without a map two objects of 50,000 keys each would be compared 2.5 billion times.
	if m.nodes[n].members <= fewKeys {
		return nil
	}
	index := make(map[string]int, m.nodes[n].members)
	for c := n + 1; c < m.nodes[n].next; c = m.nodes[c].next {
		index[decode(m.nodes[c].key)] = c
	}
	return index
}

func (m *merger) find(n int, index map[string]int, raw []byte) int {
	if index == nil {
		for c := n + 1; c < m.nodes[n].next; c = m.nodes[c].next {
			if equalRaw(m.nodes[c].key, raw) {
				return c
			}
		}
		return -1
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = []byte(decode(raw))
	}
	if c, ok := index[string(raw)]; ok {
		return c
	}
	return -1
}
