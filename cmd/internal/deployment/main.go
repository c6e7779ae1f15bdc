// A tool for .ci/deploy, not a part of the program: it checks files for Compose as Compose does before it starts
// anything. helm is here as a tool of the module.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func check(file string) error {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithInterpolation(true), cli.WithConsistency(true))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	for _, service := range project.Services {
		for _, volume := range service.Volumes {
			if volume.Type != "bind" {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil {
				return fmt.Errorf("service %s: %w", service.Name, err)
			}
		}
	}
	fmt.Printf("%s: %d services\n", file, len(project.Services))
	return nil
}
