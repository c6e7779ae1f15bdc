// Package template answers which parameters a template declares, without rendering it (gateway/INTERFACE.md, "Template
// parameters"). Report templates are XML (package rml), document templates are Office Open XML (package docx); package
// param defines what a declaration is. Parameters is pure: it answers any bytes with the parameters, or with a *Fault
// that says what is wrong with the file, within 2 s and 64 MB on one core under the default limits. Service opens the
// files as the caller, bounds how many are parsed at the same time, and caches the answers by the file's identity. A
// file that changes while it is read gives an error or a mixture of its old and new parameters.
package template

import (
	"container/list"
	"context"
	"errors"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/semaphore"
	"troupe/actors/internal/supervise"
	"troupe/actors/repository"
	"troupe/actors/template/docx"
	"troupe/actors/template/param"
	"troupe/actors/template/rml"
)

// Kind says how a template is read.
type Kind uint8

const (
	Report   Kind = iota + 1 // a report template: an XML file, .rml
	Document                 // a document template: a document of Office Open XML, .docx, .dotx, .docm or .dotm
)

// String returns the usual extension of the kind's files, without its dot.
func (k Kind) String() string {
	if len(extensions[k]) == 0 {
		return "unknown"
	}
	return extensions[k][0][1:]
}

var extensions = map[Kind][]string{
	Report:   {".rml"},
	Document: {".docx", ".dotx", ".docm", ".dotm"},
}

// KindOf returns the kind of the templates with a file name's extension, whose case does not count; ok is false for
// every other extension.
func KindOf(name string) (kind Kind, ok bool) {
	extension := strings.ToLower(path.Ext(name))
	for kind, known := range extensions {
		if slices.Contains(known, extension) {
			return kind, true
		}
	}
	return 0, false
}

// Sniff guesses the kind of a file by its first bytes, for files whose name does not say it.
func Sniff(head []byte) Kind {
	for _, magic := range []string{"PK\x03\x04", "PK\x05\x06", "\xd0\xcf\x11\xe0"} {
		if strings.HasPrefix(string(head), magic) {
			return Document
		}
	}
	return Report
}

// What package param describes.
type (
	// Param is a parameter of a template.
	Param = param.Param
	// Limits bound the work that one file can cause.
	Limits = param.Limits
	// Fault is an error about the content of a file.
	Fault = param.Fault
)

var (
	ErrNotTemplate = param.ErrNotTemplate
	ErrEncrypted   = param.ErrEncrypted
	ErrTooLarge    = param.ErrTooLarge
)

// Parameters returns the parameters that the template of size bytes in r declares: one for each name, ascending by
// name, by code point; never nil without an error. A zero Limits has the defaults.
//
// Errors: a *Fault, which wraps ErrNotTemplate, ErrEncrypted or ErrTooLarge, about the content; any other error is that
// of r.
func Parameters(kind Kind, r io.ReaderAt, size int64, limits Limits) ([]Param, error) {
	switch kind {
	case Report:
		return rml.Parameters(r, size, limits)
	case Document:
		return docx.Parameters(r, size, limits)
	}
	panic("template: unknown kind " + kind.String())
}

// Files opens files on behalf of a caller; repository.Service does.
type Files interface {
	Open(ctx context.Context, caller *identity.Principal, path string) (*repository.File, error)
}

// Options configures a Service. System and Files are required.
type Options struct {
	System *actors.System
	Files  Files
	Limits Limits // Limits bound the work of one file; zero is the defaults
	// ParsersMax is how many files are parsed at the same time. Default: the number of processors.
	ParsersMax int
	// WaitMax is how long a request waits for a worker, and for a parser. Default: 2 s.
	WaitMax time.Duration
	// CachedBytesMax is the size of the cache of answers, over all files. Default: 16 MiB.
	CachedBytesMax int
	Log            zerolog.Logger
}

// Service sends requests to the supervisor of group C. Its methods are safe for concurrent use.
type Service struct {
	o          Options
	supervisor *supervise.Supervisor
	parsers    *semaphore.Semaphore[identity.UserID]
	cache      *cache

	parsed, cached atomic.Int64
}

// Start spawns the supervisor. Stop must be called.
func Start(o Options) *Service {
	if o.ParsersMax == 0 {
		o.ParsersMax = runtime.GOMAXPROCS(0)
	}
	if o.WaitMax == 0 {
		o.WaitMax = 2 * time.Second
	}
	if o.CachedBytesMax == 0 {
		o.CachedBytesMax = 16 << 20
	}
	return &Service{
		o: o, parsers: semaphore.New[identity.UserID](o.ParsersMax), cache: newCache(o.CachedBytesMax),
		supervisor: supervise.Start(supervise.Options{System: o.System, Name: "template", WaitMax: o.WaitMax, Log: o.Log}),
	}
}

// Stop refuses new requests and waits until the open ones are answered or ctx ends.
func (s *Service) Stop(ctx context.Context) error { return s.supervisor.Stop(ctx) }

// Metrics are counters since the start, except Supervisor.Open, which is the number now.
type Metrics struct {
	Supervisor     supervise.Metrics
	Parsed, Cached int64 // Parsed counts files that were parsed, Cached answers from the cache
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	return Metrics{Supervisor: s.supervisor.Metrics(), Parsed: s.parsed.Load(), Cached: s.cached.Load()}
}

// Parameters returns what the template under a path of the repository declares, as the function Parameters does; the
// slice is shared and must not be changed. It reads the file as the caller: what the caller does not read is
// failure.ErrNotFound.
func (s *Service) Parameters(ctx context.Context, caller *identity.Principal, kind Kind, path string) (params []Param, err error) {
	err = s.supervisor.Do(ctx, caller.ID, "parameters", func(ctx context.Context) (err error) {
		params, err = s.parameters(ctx, caller, kind, path)
		return err
	})
	return params, failure.In("parameters of a", kind.String(), err)
}

func (s *Service) parameters(ctx context.Context, caller *identity.Principal, kind Kind, path string) (params []Param, err error) {
	file, err := s.o.Files.Open(ctx, caller, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if named, ok := KindOf(path); !ok || named != kind {
		return nil, refuse(param.NotTemplate("its name does not end in " + strings.Join(extensions[kind], ", ")))
	}
	key := cacheKey{kind, file.Identity()}
	if params, ok := s.cache.load(key); ok {
		s.cached.Add(1)
		return params, nil
	}
	parser := s.parsers.Slot(caller.ID)
	if err := s.acquire(ctx, parser); err != nil {
		return nil, err
	}
	defer parser.Release()
	s.parsed.Add(1)
	params, err = Parameters(kind, file, file.Size(), s.o.Limits)
	if err != nil {
		return nil, refuse(err)
	}
	s.cache.store(key, params)
	return params, nil
}

func refuse(err error) error {
	fault := (*Fault)(nil)
	switch {
	case errors.Is(err, failure.ErrUnavailable):
		return err
	case errors.As(err, &fault):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(param.NotTemplate("it became shorter while it was read"))
	default:
		return failure.Errorf(failure.ErrInternal, "%w", err)
	}
	kind := failure.ErrUnprocessable
	if errors.Is(err, ErrTooLarge) {
		kind = failure.ErrTooLarge
	}
	return &failure.Error{Kind: kind, Reason: fault.Reason, Cause: err}
}

func (s *Service) acquire(ctx context.Context, parser *semaphore.Slot[identity.UserID]) error {
	waiting, cancel := context.WithTimeout(ctx, s.o.WaitMax)
	defer cancel()
	if parser.Acquire(waiting) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return failure.ErrBusy
}

type cacheKey struct {
	kind Kind
	file repository.Identity
}

// A changed file has another key. The caller's right to the file is checked before each use.
type cache struct {
	max int // bytes
	mu  struct {
		sync.Mutex
		byKey map[cacheKey]*list.Element // of *cached
		order *list.List                 // the last used in front
		size  int                        // bytes
	}
}

type cached struct {
	key    cacheKey
	params []Param
	size   int // bytes
}

// entryBytes is about the size of an answer without parameters, paramBytes that of a parameter without its texts.
const entryBytes, paramBytes = 400, 48

func newCached(key cacheKey, params []Param) *cached {
	size := entryBytes + len(key.file.Path) + paramBytes*len(params)
	for _, p := range params {
		size += len(p.Name) + len(p.Type) + len(p.Default)
	}
	return &cached{key, params, size}
}

func newCache(bytesMax int) *cache {
	c := &cache{max: bytesMax}
	c.mu.byKey, c.mu.order = map[cacheKey]*list.Element{}, list.New()
	return c
}

func (c *cache) load(key cacheKey) ([]Param, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.mu.byKey[key]
	if !ok {
		return nil, false
	}
	c.mu.order.MoveToFront(element)
	return element.Value.(*cached).params, true
}

func (c *cache) store(key cacheKey, params []Param) {
	entry := newCached(key, params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.mu.byKey[key]; twice || entry.size > c.max {
		return
	}
	c.mu.byKey[key] = c.mu.order.PushFront(entry)
	for c.mu.size += entry.size; c.mu.size > c.max; {
		evicted := c.mu.order.Remove(c.mu.order.Back()).(*cached)
		delete(c.mu.byKey, evicted.key)
		c.mu.size -= evicted.size
	}
}
