package leave

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Opener starts a peer with its files in a folder that is there and empty. What it returns to
// stop the peer is called once, also after an error when it is not nil.
type Opener func(ctx context.Context, dir string) (p Peer, stop func(), err error)

// Main is the program around a peer: it serves until it is interrupted, and returns the exit
// code. A program's own flags must be defined before.
func Main(open Opener) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	listen := flag.String("listen", "127.0.0.1:8080", "`address` of the workflow interface")
	dir := flag.String("dir", "", "an empty `folder` for what the peer stores")
	flag.Parse()
	if err := serve(ctx, open, *dir, *listen); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, open Opener, dir, listen string) error {
	if dir == "" {
		return errors.New("-dir is missing")
	}
	p, stop, err := open(ctx, dir)
	if stop != nil {
		defer stop()
	}
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: front(p), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
