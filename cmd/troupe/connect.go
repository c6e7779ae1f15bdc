package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
)

// standardAddress is where `troupe serve` listens when nobody says otherwise.
const standardAddress = "http://127.0.0.1:8080"

// connection says which service a command asks, and as whom. What stands closer
// to the command wins:
//
//  1. the flags --address and --token-file,
//  2. the context that --context names,
//  3. the environment: TROUPE_ADDRESS and TROUPE_TOKEN (or TROUPE_TOKEN_FILE),
//  4. the context that TROUPE_CONTEXT names,
//  5. the current context of the contexts file,
//  6. the standard address.
//
// NB: a context's token goes to the context's address and nowhere else, so that
// --address cannot hand it to another service.
type connection struct {
	address, tokenFile, context string
	timeout                     time.Duration
}

// addConnection adds the flags that say where to connect.
func addConnection(cmd *cobra.Command) *connection {
	c := &connection{timeout: 90 * time.Second}
	f := cmd.Flags()
	f.StringVar(&c.address, "address", "", "URL of the service (default: the context's, else "+standardAddress+")")
	f.StringVar(&c.tokenFile, "token-file", "", "file with the API token")
	f.StringVar(&c.context, "context", "", "context to use; see troupe context")
	f.Var(duration(&c.timeout), "timeout", "how long one request may take, with its repetitions")
	return c
}

// client makes the client of the service.
func (c *connection) client() (*client.Client, error) {
	address, token, err := c.resolve()
	if err != nil {
		return nil, err
	}
	made, err := client.New(client.Options{
		Address: address, Token: token, CallMax: c.timeout, UserAgent: "troupe",
	})
	if err != nil {
		return nil, usageError{err}
	}
	return made, nil
}

// profiles are the contexts of the levels 2, 4 and 5; nil where there is none.
func (c *connection) profiles() (flag, environment, current *profile, err error) {
	all, err := loadContexts()
	if err != nil {
		return nil, nil, nil, err
	}
	if c.context != "" {
		if flag, err = all.named(c.context); err != nil {
			return nil, nil, nil, fmt.Errorf("--context: %w", err)
		}
	}
	if name := os.Getenv("TROUPE_CONTEXT"); name != "" && c.context == "" {
		if environment, err = all.named(name); err != nil {
			return nil, nil, nil, fmt.Errorf("TROUPE_CONTEXT: %w", err)
		}
	}
	if c.context == "" && environment == nil && all.current != "" {
		current = all.find(all.current)
	}
	return flag, environment, current, nil
}

// resolve finds the address and the token.
func (c *connection) resolve() (address, token string, err error) {
	var flag, environment, current *profile
	// With both flags nothing else is looked at.
	if c.address == "" || c.tokenFile == "" || c.context != "" {
		if flag, environment, current, err = c.profiles(); err != nil {
			return "", "", err
		}
	}
	addressOf := func(p *profile) string {
		if p == nil {
			return ""
		}
		return p.address
	}
	for _, candidate := range []string{
		c.address, addressOf(flag), os.Getenv("TROUPE_ADDRESS"), addressOf(environment), addressOf(current), standardAddress,
	} {
		if candidate != "" {
			address = candidate
			break
		}
	}
	token, err = c.token(address, flag, environment, current)
	return address, token, err
}

// token finds the token for an address.
func (c *connection) token(address string, flag, environment, current *profile) (string, error) {
	if c.tokenFile != "" {
		return readTokenFile("--token-file", c.tokenFile)
	}
	var elsewhere *profile // a context with a token that is for another address
	of := func(p *profile) (string, error) {
		switch {
		case p == nil || p.token == "" && p.tokenFile == "":
			return "", nil
		case !sameAddress(p.address, address):
			elsewhere = p
			return "", nil
		case p.token != "":
			return checkedToken("context "+p.name, p.token)
		}
		return readTokenFile("context "+p.name, p.tokenFile)
	}
	if token, err := of(flag); token != "" || err != nil {
		return token, err
	}
	if token, ok := os.LookupEnv("TROUPE_TOKEN"); ok && token != "" {
		return checkedToken("TROUPE_TOKEN", token)
	}
	if name := os.Getenv("TROUPE_TOKEN_FILE"); name != "" {
		return readTokenFile("TROUPE_TOKEN_FILE", name)
	}
	for _, p := range []*profile{environment, current} {
		if token, err := of(p); token != "" || err != nil {
			return token, err
		}
	}
	return "", noToken(address, elsewhere, flag, environment, current)
}

func sameAddress(a, b string) bool {
	return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
}

// noToken says how to get a token.
func noToken(address string, elsewhere *profile, used ...*profile) error {
	name := "local"
	for _, p := range used {
		if p != nil && sameAddress(p.address, address) {
			name = p.name
		}
	}
	why := ""
	if elsewhere != nil {
		why = fmt.Sprintf(" (that of the context %s is for %s)", elsewhere.name, elsewhere.address)
	}
	return fmt.Errorf(`there is no token for %s%s. Make one on the server's machine and keep it in a context:

  troupe token create --home ./troupe-home --user LOGIN | troupe context set %s --address %s --token-stdin

Or give one with --token-file FILE, or in TROUPE_TOKEN`, address, why, name, address)
}

// readTokenFile reads a file that holds a token alone.
func readTokenFile(source, name string) (string, error) {
	text, err := readInputFile(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	return checkedToken(source+" "+name, string(text))
}

// checkedToken takes the white space off a token. Errors never show it.
func checkedToken(source, text string) (string, error) {
	token := string(bytes.TrimSpace([]byte(text)))
	if token == "" {
		return "", fmt.Errorf("%s: it holds no token", source)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' || c == ',' {
			return "", fmt.Errorf("%s: this is not a token", source)
		}
	}
	return token, nil
}

// explained makes a usageError of what the client would not send, and adds to
// errors what a person at a terminal can do.
func explained(err error) error {
	var refused *client.Error
	switch {
	case errors.Is(err, client.ErrInvalid):
		return usageError{err}
	case errors.As(err, &refused) && refused.Status == 401:
		return fmt.Errorf("%w; the token may be revoked or expired: troupe token list", err)
	}
	return err
}
