// Command chartrights writes the rules of the managers' roles from what the packages declare as their
// rights, each beside the code that makes the calls (ADR 81):
//
//	//rights:<role> <verbs> <resources> [names=<names>] [if=<condition>] -- <reason>
//
// Verbs, resources (plural.group, plural/subresource.group), names and roles are lists with commas.
// It is run at the top of the repository.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "chartrights:", err)
		os.Exit(1)
	}
}

// run writes all files of a checkout.
func run(root string) error {
	declared, err := read(root)
	if err != nil {
		return err
	}
	files, err := files(declared)
	if err != nil {
		return err
	}
	for path, content := range files {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packageOf names the folder of a file, as ARCHITECTURE.md does.
func packageOf(root, path string) string {
	folder, _ := filepath.Rel(root, filepath.Dir(path)) // the path was found below the root
	return strings.TrimPrefix(folder, "pkg"+string(filepath.Separator))
}

// read finds what is declared below pkg and cmd, in the order of the files.
func read(root string) ([]declaration, error) {
	var all []declaration
	for _, folder := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found, err := declarations(string(content))
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			for _, one := range found {
				one.reason = packageOf(root, path) + ": " + one.reason
				all = append(all, one)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
