// Package service runs the service below HTTP in this process, on a folder and with
// one workflow, for measurements without a network.
package service

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/catalog"
	"troupe/actors/workflow"
	"troupe/persistence"
	"troupe/statemachine"
)

// Service is the running service. Close ends it.
type Service struct {
	*workflow.Router
	Store  *persistence.Store
	system *actors.System
}

// Open starts the service on a folder, as the program does. definition is the text of
// its workflow; o's Store, Catalog, System and Log are replaced.
func Open(dir, definition string, o workflow.Options) (*Service, error) {
	o.Log = zerolog.Nop()
	store, err := persistence.Open(dir, persistence.Options{Log: o.Log})
	if err != nil {
		return nil, err
	}
	o.Store = store
	if o.Catalog, err = publish(store, definition); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	o.System = actors.NewSystem(o.Log)
	router, err := workflow.Start(o)
	if err != nil {
		return nil, errors.Join(err, o.System.Stop(context.Background()), store.Close())
	}
	return &Service{router, store, o.System}, nil
}

func publish(store *persistence.Store, definition string) (*catalog.Catalog, error) {
	const file = "workflow.yaml"
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	if err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(statemachine.Source{File: file, Text: []byte(definition)})
	if err != nil {
		return nil, err
	}
	c, err := catalog.Open(catalog.Options{Store: store, Parser: parser, Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	return c, c.Publish([]catalog.Source{{File: file, Text: []byte(definition), Parsed: parsed.Definition}})
}

// Close ends the service in order.
func (s *Service) Close() error {
	return errors.Join(s.Stop(context.Background()), s.system.Stop(context.Background()), s.Store.Close())
}
