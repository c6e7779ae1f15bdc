package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/build"
	"troupe/cmd/internal/cli"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the Go version that the program was built with",
		Long: "Show what this program was built from. /readyz?verbose shows the same of a running\n" +
			"service. With --sbom it is a software bill of materials instead: CycloneDX 1.6, JSON,\n" +
			"with every Go module and every npm package that is in the program.",
		Example: "  troupe version\n" +
			"  troupe version -o json | jq -r .commit\n" +
			"  troupe version --sbom > troupe.cdx.json",
	}
	out := cli.AddOutput(cmd, cli.AnyForm...)
	sbom := cmd.Flags().Bool("sbom", false, "print a software bill of materials, CycloneDX 1.6 in JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *sbom {
			if cmd.Flags().Changed("output") {
				return cli.Usagef("--sbom is JSON: it goes without --output")
			}
			return writeSBOM(out.To, build.Read())
		}
		b := build.This()
		if out.Form == cli.FormTable {
			_, err := io.WriteString(out.To, b.String()+"\n")
			return err
		}
		return out.Marshaled(json.MarshalIndent(b, "", "  "))
	}
	return cmd
}
