package config

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/cmd/internal/cli"
)

// Logger writes to standard error.
func (c *Config) Logger() zerolog.Logger {
	level, _ := zerolog.ParseLevel(c.LogLevel) // isLogLevel has looked at it
	return zerolog.New(c.logWriter()).Level(level).With().Timestamp().Logger()
}

func (c *Config) logsText() bool {
	return c.logFormat == "text" || c.logFormat == "auto" && cli.IsTerminal(os.Stderr)
}

func (c *Config) logWriter() io.Writer {
	if c.logsText() {
		return zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}
	}
	return os.Stderr
}

// ServerLogger is the logger of the server, and what ends its start: a person at a terminal
// reads one line then, and until then what is amiss alone.
func (c *Config) ServerLogger() (log zerolog.Logger, started func()) {
	log = c.Logger()
	if c.sources["log-level"] != "default" || !c.logsText() {
		return log, func() {}
	}
	w := &quietStart{to: c.logWriter()}
	return log.Output(w), func() { w.started.Store(true) }
}

// quietStart leaves out what is less than a warning until the server has started.
type quietStart struct {
	to      io.Writer
	started atomic.Bool
}

func (w *quietStart) Write(line []byte) (int, error) { return w.to.Write(line) }

// WriteLevel implements zerolog.LevelWriter.
func (w *quietStart) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if level < zerolog.WarnLevel && !w.started.Load() {
		return len(line), nil
	}
	return w.to.Write(line)
}
