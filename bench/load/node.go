package load

import (
	"net"
	"slices"
	"time"
)

// connections are one to each node, not opened yet.
func connections(o *Options) []*connection {
	all := []*connection{{addr: o.Addr, tls: o.TLS}}
	for _, addr := range o.Others {
		c := &connection{addr: addr}
		if o.TLS != nil {
			c.tls = o.TLS.Clone()
			c.tls.ServerName, _, _ = net.SplitHostPort(addr)
		}
		all = append(all, c)
	}
	return all
}

// about returns which instance the next request of a kind is about; empty for none.
func (w *worker) about(k Kind) string {
	if len(w.conns) == 1 || k != Event && k != Read || k == Event && w.options.Batch > 0 {
		return ""
	}
	return w.subjects[w.next].id
}

// aim chooses the node of the next request: the one that leads the instance, as far as answers have told, and else each
// in turn. One that could not be dialled is passed over for a while.
func (w *worker) aim(instance string) {
	if len(w.conns) == 1 {
		return
	}
	now := time.Now()
	if at, ok := w.table.Find(instance); ok && !w.conns[at].down.After(now) {
		w.conn = w.conns[at]
		return
	}
	if next := w.another(now); next != nil {
		w.conn = next
	}
}

// another returns the next connection to a node that can be dialled; nil when there is none but the one in use.
func (w *worker) another(now time.Time) *connection {
	at := slices.Index(w.conns, w.conn)
	for i := 1; i < len(w.conns); i++ {
		if c := w.conns[(at+i)%len(w.conns)]; !c.down.After(now) {
			return c
		}
	}
	return nil
}

func (w *worker) learn(header string) {
	if len(w.conns) > 1 && header != "" {
		w.table.Learn(slices.Index(w.conns, w.conn), header)
	}
}
