package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"troupe/gateway/client"
	"troupe/gateway/servertest"
)

// exampleTest lets an example start the service as a test does.
type exampleTest struct {
	testing.TB
	ctx     context.Context
	cleanup []func()
}

func (e *exampleTest) Helper()                   {}
func (e *exampleTest) Context() context.Context  { return e.ctx }
func (e *exampleTest) Cleanup(f func())          { e.cleanup = append(e.cleanup, f) }
func (e *exampleTest) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (e *exampleTest) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (e *exampleTest) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }

func (e *exampleTest) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startExample() (s *servertest.Server, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exampleTest{ctx: ctx}
	s = servertest.Start(e)
	return s, func() {
		cancel()
		for i := len(e.cleanup) - 1; i >= 0; i-- {
			e.cleanup[i]()
		}
	}
}

// A client creates an instance, sends it an event, and reads it.
func Example() {
	service, stop := startExample()
	defer stop()

	c, err := client.New(client.Options{Address: service.URL, Token: service.Token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	ctx := context.Background()
	made, err := c.Create(ctx, client.CreateRequest{WorkflowID: "leave", Public: json.RawMessage(`{"days":5}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	moved, err := c.Send(ctx, client.SendRequest{WorkflowID: "leave", InstanceID: made.ID, Event: "submit"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(moved.States[0].NodeID, string(moved.Public), moved.Sequence)

	// The workflow refuses what no transition handles now.
	_, err = c.Send(ctx, client.SendRequest{WorkflowID: "leave", InstanceID: made.ID, Event: "submit"})
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.Code)
	}
	// Output:
	// review {"days":5} 2
	// 409 EventNotAllowed
}
