package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/demo"
	"troupe/cmd/internal/homedir"
	"troupe/gateway"
)

// seed comes before the router, because the clock of the requests goes through the weeks before.
func (s *service) seed(ctx context.Context) error {
	if !s.demo {
		return nil
	}
	if s.node != nil {
		return errors.New("--demo cannot be used on a node of a cluster")
	}
	workflows := s.config.Workflow
	workflows.Store, workflows.Catalog = s.store, s.catalog
	made, err := demo.Seed(ctx, demo.Options{
		Workflow: workflows, Templates: s.formTemplates, Directory: s.identities.Directory(), Now: time.Now(), Log: s.log.Level(zerolog.WarnLevel),
	})
	if err != nil {
		return fmt.Errorf("--demo in %s: %w", s.config.Home, err)
	}
	s.made = made
	return nil
}

// A home with faults is refused by the start, with all of them.
func (s *service) checkDemo() error {
	c := s.config
	if !s.demo || c.IsNode() {
		return nil
	}
	set, err := homedir.Load(c.Home)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	has := func(id string) bool {
		return slices.ContainsFunc(set.Workflows, func(w catalog.Source) bool { return string(w.Parsed.ID) == id })
	}
	if err := demo.Check(has, set.Directory); err != nil {
		return fmt.Errorf("--demo in %s: %w", c.Home, err)
	}
	return nil
}

// greet writes in one piece: anyone who wants the first line alone, as head does, then goes, which would end the process.
func (s *service) greet(out io.Writer) error {
	g := demo.Greeting{
		Home: cli.ShellWord(s.config.Home), Address: addressOf(s.gateway.Addr(), s.certificates != nil), BasePath: strings.TrimSuffix(s.config.Gateway.BasePath, "/"),
		Troupe: shellProgram(), Made: s.made,
	}
	text := "troupe is ready at " + g.Address + g.BasePath + "\n"
	if s.links != nil {
		if gateway.IsLoopback(s.gateway.Addr()) {
			g.Link = s.links.Add
		}
		text += g.Text()
	}
	_, err := io.WriteString(out, text)
	return err
}

func addressOf(a net.Addr, overTLS bool) string {
	scheme := "http://"
	if overTLS {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip.IsUnspecified() {
		return scheme + net.JoinHostPort("localhost", port)
	}
	return scheme + a.String()
}

func shellProgram() string {
	exe, err := os.Executable()
	if err != nil || filepath.Base(filepath.Dir(exe)) == "exe" && strings.Contains(exe, "go-build") {
		return "go run ./cmd/troupe"
	}
	return cli.ShellWord(exe)
}

var ignored = []string{"/" + homedir.DataFolder + "/", "/" + homedir.AdminSocket, "/" + homedir.StoreIDFile}

// ignoreStoreID keeps the store's id out of git, so that a clone of the text files is a home that never had a store.
func ignoreStoreID(home string) error {
	path := filepath.Join(home, homedir.GitIgnoreFile)
	if err := homedir.DemandFile(path); err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	add := strings.Join(ignored, "\n") + "\n"
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		for line := range strings.Lines(string(text)) {
			if strings.TrimPrefix(strings.TrimSpace(line), "/") == homedir.StoreIDFile {
				return nil
			}
		}
		add = "/" + homedir.StoreIDFile + "\n"
		if len(text) > 0 && text[len(text)-1] != '\n' {
			add = "\n" + add
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(add)
	return errors.Join(err, f.Close())
}
