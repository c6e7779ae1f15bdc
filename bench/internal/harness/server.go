package harness

import (
	"context"

	"troupe/bench/process"
)

// Server is a build of troupe that serves a home.
type Server struct {
	*process.Process
	Home string
	// Admin is the address of its operations listener.
	Admin string
	// Tokens are those of its users, by name.
	Tokens map[string]string
}

// Serve starts a program on a home that is there, gives tokens to some of its users, and returns when
// it is ready. Its log is beside the home.
func Serve(ctx context.Context, program, home string, users []string, args ...string) (s *Server, err error) {
	s = &Server{Home: home}
	if s.Tokens, err = process.Tokens(ctx, program, home, users); err != nil {
		return nil, err
	}
	return s, s.Start(ctx, program, args...)
}

// Start starts the server, again after it has ended.
func (s *Server) Start(ctx context.Context, program string, args ...string) (err error) {
	if s.Admin, err = process.FreeAddr(); err != nil {
		return err
	}
	s.Process, err = process.Start(ctx, s.Home+".log", program, append([]string{"serve", "--home", s.Home, "--admin", s.Admin}, args...)...)
	return err
}
