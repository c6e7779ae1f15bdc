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
func (e *exampleTest) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
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

func startExample(start func(testing.TB) *servertest.Server) (s *servertest.Server, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &exampleTest{ctx: ctx}
	s = start(e)
	return s, func() {
		cancel()
		for i := len(e.cleanup) - 1; i >= 0; i-- {
			e.cleanup[i]()
		}
	}
}

// A client creates an instance, sends it an event, and reads it.
func Example() {
	service, stop := startExample(servertest.Start)
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

// A worker charges the cards of orders, until it is stopped.
func ExampleWorker() {
	service, stop := startExample(servertest.StartOrder)
	defer stop()

	c, err := client.New(client.Options{Address: service.URL, Token: service.Token})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	made, err := c.Create(context.Background(), client.CreateRequest{WorkflowID: "order", Public: json.RawMessage(`{"amount":12.50}`)})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithCancel(context.Background())
	worker := client.Worker{
		Client: c, Types: []string{"charge"}, Concurrency: 4,
		Handle: func(_ context.Context, job *client.Job) (any, error) {
			fmt.Println("charge", string(job.Data))
			cancel() // one is enough here
			return map[string]string{"id": "r-1"}, nil
		},
	}
	if err := worker.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}

	paid, err := c.Instance(context.Background(), client.InstanceRequest{WorkflowID: "order", InstanceID: made.ID})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(paid.States[0].NodeID, string(paid.Public))
	// Output:
	// charge {"amount":12.50}
	// paid {"amount":12.50,"receipt":"r-1"}
}
