// Package raftlog is where Raft logs to.
package raftlog

import (
	"fmt"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3"
)

// New returns what Raft logs to. Operators get lines of our own; these are for who looks for mistakes in Raft.
func New(log zerolog.Logger) raft.Logger { return logger{log} }

type logger struct{ log zerolog.Logger }

func (l logger) Debug(v ...any)                 { l.log.Trace().Msg("raft: " + fmt.Sprint(v...)) }
func (l logger) Debugf(format string, v ...any) { l.log.Trace().Msgf("raft: "+format, v...) }
func (l logger) Info(v ...any)                  { l.log.Debug().Msg("raft: " + fmt.Sprint(v...)) }
func (l logger) Infof(format string, v ...any)  { l.log.Debug().Msgf("raft: "+format, v...) }
func (l logger) Warning(v ...any)               { l.log.Debug().Msg("raft: " + fmt.Sprint(v...)) }
func (l logger) Warningf(f string, v ...any)    { l.log.Debug().Msgf("raft: "+f, v...) }
func (l logger) Error(v ...any)                 { l.log.Warn().Msg("raft: " + fmt.Sprint(v...)) }
func (l logger) Errorf(format string, v ...any) { l.log.Warn().Msgf("raft: "+format, v...) }
func (l logger) Fatal(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l logger) Fatalf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
func (l logger) Panic(v ...any)                 { panic("raft: " + fmt.Sprint(v...)) }
func (l logger) Panicf(format string, v ...any) { panic("raft: " + fmt.Sprintf(format, v...)) }
