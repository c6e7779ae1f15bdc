// Package certificate has the certificate of a server that speaks TLS. It reads it from files, looks at them every second,
// and uses what they hold now for new connections; what cannot be used leaves the one before in use. It also says whom a
// client's certificate stands for.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/guard"
)

// Options says where the files are.
type Options struct {
	Cert, Key string // the chain with the server's own certificate first, and its key, in PEM
	// ClientCA has the authorities whose certificates authenticate users, in PEM. Empty: clients are not asked for any.
	ClientCA string
	Log      zerolog.Logger
}

// Files is the certificate in use. Its methods may be called at once.
type Files struct {
	o       Options
	inUse   atomic.Pointer[pair]
	refused atomic.Pointer[string] // why what the files hold is not in use; nil when it is
	seen    contents               // of the last look; of the goroutine that looks

	stop    chan struct{}
	stopped sync.Once
	looking sync.WaitGroup
}

// contents are the files as they are.
type contents struct {
	cert, key, clientCA []byte
	err                 error
}

func (c *contents) equal(d *contents) bool {
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key) && bytes.Equal(c.clientCA, d.clientCA) &&
		fmt.Sprint(c.err) == fmt.Sprint(d.err)
}

// pair is a certificate with its key, ready for connections.
type pair struct {
	from    contents
	config  *tls.Config
	expires time.Time
	roots   map[string]bool // the authorities of clients, by their DER
}

// lookEvery is the pause between two looks. NB: notices of the system would come sooner, but not from every file system,
// and not when a directory above is swapped, as Kubernetes does with its secrets.
const lookEvery = time.Second

// Open reads the files and begins to look at them. Its error is one line.
func Open(o Options) (*Files, error) {
	f := &Files{o: o, stop: make(chan struct{})}
	f.seen = f.read()
	p, err := parse(f.seen)
	if err != nil {
		return nil, err
	}
	f.inUse.Store(p)
	if err := f.Ready(); err != nil {
		o.Log.Warn().Msg(err.Error())
	}
	f.looking.Go(func() { guard.Loop(f.stop, o.Log, "certificate", f.follow) })
	return f, nil
}

// Stop ends the looking.
func (f *Files) Stop(context.Context) error {
	f.stopped.Do(func() { close(f.stop) })
	f.looking.Wait()
	return nil
}

func (f *Files) follow() {
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			f.look()
		case <-f.stop:
			return
		}
	}
}

// look takes over files that are as they were at the last look: two of them are not replaced at the same moment.
func (f *Files) look() {
	now := f.read()
	settled := now.equal(&f.seen)
	f.seen = now
	switch {
	case now.equal(&f.inUse.Load().from):
		f.refused.Store(nil)
	case settled:
		f.take(now)
	}
}

func (f *Files) take(now contents) {
	p, err := parse(now)
	if err == nil {
		f.inUse.Store(p)
		f.refused.Store(nil)
		f.o.Log.Info().Time("expires", p.expires).Msg("the changed certificate is in use")
		return
	}
	reason := "the changed certificate cannot be used, the one before stays in use: " + err.Error()
	if last := f.refused.Swap(&reason); last == nil || *last != reason {
		f.o.Log.Error().Msg(reason)
	}
}

func (f *Files) read() (c contents) {
	for _, file := range []struct {
		setting, path string
		into          *[]byte
	}{{"tls.cert", f.o.Cert, &c.cert}, {"tls.key", f.o.Key, &c.key}, {"tls.clientCA", f.o.ClientCA, &c.clientCA}} {
		text, err := readFile(file.path)
		switch {
		case file.path == "" && file.into == &c.clientCA:
		case err != nil:
			c.err = fmt.Errorf("%s: %w", file.setting, err)
			return c
		case len(text) == 0 && file.into == &c.clientCA:
			c.err = fmt.Errorf("%s: %s is empty", file.setting, file.path)
			return c
		}
		*file.into = text
	}
	return c
}

// fileBytesMax is far more than a chain, or the authorities of a system.
const fileBytesMax = 4 << 20

// readFile reads a regular file and never waits, as opening a named pipe or reading a device would.
func readFile(path string) ([]byte, error) {
	in, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // read-only: nothing to lose
	is, err := in.Stat()
	switch {
	case err != nil:
		return nil, err
	case !is.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case is.Size() > fileBytesMax:
		return nil, fmt.Errorf("%s is larger than %d MiB", path, fileBytesMax>>20)
	}
	return io.ReadAll(io.LimitReader(in, fileBytesMax))
}

func parse(c contents) (*pair, error) {
	if c.err != nil {
		return nil, c.err
	}
	own, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("tls.cert and tls.key: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	p := &pair{from: c, expires: own.Leaf.NotAfter, roots: map[string]bool{}}
	p.config = newConfig()
	p.config.Certificates = []tls.Certificate{own}
	if c.clientCA == nil {
		return p, nil
	}
	p.config.ClientAuth, p.config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	for block, rest := nextCertificate(c.clientCA); block != nil; block, rest = nextCertificate(rest) {
		root, err := x509.ParseCertificate(block)
		if err != nil {
			return nil, fmt.Errorf("tls.clientCA: %w", err)
		}
		p.config.ClientCAs.AddCert(root)
		p.roots[string(root.Raw)] = true
	}
	if len(p.roots) == 0 {
		return nil, errors.New("tls.clientCA: no certificate in PEM")
	}
	return p, nil
}

func newConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

// Config is for a listener: each connection gets what is in use when it begins.
func (f *Files) Config() *tls.Config {
	c := newConfig()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.inUse.Load().config, nil }
	return c
}

// Ready says why what the files hold is not in use, or that it is too old.
func (f *Files) Ready() error {
	if reason := f.refused.Load(); reason != nil {
		return errors.New(*reason)
	}
	if expires := f.inUse.Load().expires; time.Now().After(expires) {
		return fmt.Errorf("the certificate expired at %s: replace tls.cert and tls.key", expires.UTC().Format(time.RFC3339))
	}
	return nil
}
