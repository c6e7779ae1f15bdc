// Package mailbox is the mailbox of an actor of which there are many: it takes little
// memory, and who posts to an idle actor handles the message.
package mailbox

import (
	"runtime"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// Mailbox is an unbounded actor.Mailbox: messages are handled one after the other, in the order in which they came,
// those of protoactor before those of users. Anyone who posts bounds how many wait.
type Mailbox struct {
	invoker actor.MessageInvoker // set once, before the first message

	mu                 sync.Mutex
	running, suspended bool // somebody handles messages, or is about to
	first              any  // an instance is mostly asked one thing at a time, and needs no queue then
	more, system       []any
}

var _ actor.Mailbox = (*Mailbox)(nil)

// turnMessages is how many messages of one actor are handled before others get a turn.
const turnMessages = 300

// RegisterHandlers implements actor.Mailbox.
func (m *Mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start implements actor.Mailbox.
func (m *Mailbox) Start() {}

// UserMessageCount implements actor.Mailbox.
func (m *Mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.more)
	if m.first != nil {
		n++
	}
	return n
}

// PostUserMessage implements actor.Mailbox. message is not nil.
func (m *Mailbox) PostUserMessage(message any) {
	m.mu.Lock()
	if m.first == nil {
		m.first = message
	} else {
		m.more = append(m.more, message)
	}
	m.wake()
}

// PostSystemMessage implements actor.Mailbox.
func (m *Mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.system = append(m.system, message)
	m.wake()
}

// What comes meanwhile gets a goroutine, so that nobody is kept by the messages of others.
func (m *Mailbox) wake() {
	first := m.due() && !m.running
	m.running = m.running || first
	m.mu.Unlock()
	if first && !m.handle(1) {
		go m.process()
	}
}

func (m *Mailbox) process() {
	for !m.handle(turnMessages) {
		runtime.Gosched()
	}
}

func (m *Mailbox) handle(n int) (done bool) {
	for range n {
		message, system := m.take()
		if message == nil {
			break
		}
		m.invoke(message, system)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = m.due()
	return !m.running
}

func (m *Mailbox) due() bool { return len(m.system) > 0 || m.first != nil && !m.suspended }

func (m *Mailbox) take() (message any, system bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !m.due():
	case len(m.system) > 0:
		if message, m.system = m.system[0], m.system[1:]; len(m.system) == 0 {
			m.system = nil
		}
		return message, true
	default:
		message, m.first = m.first, nil
		if len(m.more) > 0 {
			m.first, m.more[0] = m.more[0], nil // NB: what was handled is not kept
			if m.more = m.more[1:]; len(m.more) == 0 {
				m.more = nil
			}
		}
	}
	return message, false
}

// A panic, which an actor of ours keeps to itself, goes to protoactor's supervision.
func (m *Mailbox) invoke(message any, system bool) {
	defer func() {
		if r := recover(); r != nil {
			m.invoker.EscalateFailure(r, message)
		}
	}()
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.suspend(false)
	default:
		if system {
			m.invoker.InvokeSystemMessage(message)
		} else {
			m.invoker.InvokeUserMessage(message)
		}
	}
}

func (m *Mailbox) suspend(suspended bool) {
	m.mu.Lock()
	m.suspended = suspended
	m.mu.Unlock()
}
