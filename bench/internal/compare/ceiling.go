package compare

import (
	"context"
	"errors"
	"net/http"
	"time"

	"troupe/bench/internal/ceiling"
	"troupe/bench/internal/harness"
)

const ceilingCommand = "ceiling"

// serveCeiling is the other side of startCeiling: it serves until ctx ends.
func serveCeiling(ctx context.Context, h *harness.Harness) error {
	listen := h.Flags.String("listen", "", "address")
	dir := h.Flags.String("dir", "", "folder of the store; empty stores nothing")
	if err := h.Parse(""); err != nil {
		return err
	}
	s, err := ceiling.Open(*dir)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *listen, Handler: s, ReadHeaderTimeout: time.Minute}
	stopped := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		// Not ctx: it has ended.
		late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- server.Shutdown(late)
	})()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(<-stopped, s.Close())
}
