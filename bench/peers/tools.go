package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"

	"troupe/bench/process"
)

// The versions of the servers. go install refuses newer ones of Temporal's command line, whose go.mod replaces a module.
const (
	restateVersion  = "1.7.12"
	temporalVersion = "v1.5.1"
)

// tools has the programs of all systems, and gets those that are missing into a folder that stays.
type tools struct {
	dir string // absolute
	top string // the folder of the repository
	tmp string // for what goes with the run
}

func newTools(top, tmp string) (*tools, error) {
	cache, err := os.UserCacheDir()
	t := &tools{dir: filepath.Join(cache, "troupe-peers"), top: top, tmp: tmp}
	if err == nil {
		err = os.MkdirAll(t.dir, 0o755)
	}
	return t, err
}

// fetch runs a command that gets something, and shows what it says.
func fetch(ctx context.Context, dir string, env []string, name string, args ...string) error {
	fmt.Fprintln(os.Stderr, "fetching:", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// troupe is the build of this tree, without C as README has people build it.
func (t *tools) troupe(ctx context.Context) (string, error) {
	program := filepath.Join(t.tmp, "troupe")
	_, err := process.Output(ctx, "env", "CGO_ENABLED=0", "go", "-C", t.top, "build", "-o", program, "./cmd/troupe")
	return program, err
}

// restate is the server from npm, which ships it for several systems: 60 to 220 MB.
func (t *tools) restate(ctx context.Context) (string, error) {
	return t.get(filepath.Join("node_modules", "@restatedev", "restate-server-*", "bin", "restate-server"), func() error {
		return fetch(ctx, t.dir, nil, "npm", "install", "--prefix", ".", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "@restatedev/restate-server@"+restateVersion)
	})
}

// temporal is the command line with the development server, built in some minutes.
func (t *tools) temporal(ctx context.Context) (string, error) {
	folder := filepath.Join(t.dir, "temporal-"+temporalVersion)
	return t.get(filepath.Join("temporal-"+temporalVersion, "temporal"), func() error {
		return fetch(ctx, t.dir, []string{"GOBIN=" + folder, "GOFLAGS=-trimpath", "CGO_ENABLED=0"}, "go", "install", "github.com/temporalio/cli/cmd/temporal@"+temporalVersion)
	})
}

// get returns the one file that matches a pattern below the folder, and makes it when there is none.
func (t *tools) get(pattern string, build func() error) (string, error) {
	pattern = filepath.Join(t.dir, pattern)
	found, _ := filepath.Glob(pattern)
	if len(found) == 0 {
		if err := build(); err != nil {
			return "", err
		}
		found, _ = filepath.Glob(pattern)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("there are %d files %s, want one", len(found), pattern)
	}
	return found[0], nil
}

// postgres returns the folder of PostgreSQL's newest programs, as Debian has them.
func (t *tools) postgres(context.Context) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(found) == 0 {
		return "", errors.New("there is no PostgreSQL in /usr/lib/postgresql: apt-get install postgresql")
	}
	return found[len(found)-1], nil
}

// versions names the versions of all systems.
func (t *tools) versions(ctx context.Context) string {
	postgres := "PostgreSQL"
	if folder, err := t.postgres(ctx); err == nil {
		postgres, _ = process.Output(ctx, filepath.Join(folder, "postgres"), "--version") // an error leaves nothing
	}
	module := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			module[d.Path] = d.Version
		}
	}
	return fmt.Sprintf("restate-server %s with sdk-go %s; dbos-transact-golang %s on %s; temporal CLI %s (server start-dev) with sdk %s", restateVersion, module["github.com/restatedev/sdk-go"],
		module["github.com/dbos-inc/dbos-transact-golang"], postgres, temporalVersion, module["go.temporal.io/sdk"])
}
