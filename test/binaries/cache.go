package binaries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// CacheVariable names the environment variable that moves the cache folder.
const CacheVariable = "TRELLIS_CACHE"

// Cache is the folder of built programs, one for all checkouts of a user: TRELLIS_CACHE, or trellis in the user's cache
// folder ($XDG_CACHE_HOME or ~/.cache).
func Cache() (string, error) {
	if folder := os.Getenv(CacheVariable); folder != "" {
		if !filepath.IsAbs(folder) { // it would be another folder for each package that is tested
			return "", fmt.Errorf("%s is %q: set it to an absolute path", CacheVariable, folder)
		}
		return folder, nil
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder (set %s to another one): %w", CacheVariable, err)
	}
	return filepath.Join(folder, "trellis"), nil
}

// Root is the checkout's top folder: the nearest one upward that holds PROJECT.
func Root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working folder: %w", err)
	}
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no file PROJECT in %q or above: run this inside a checkout of Trellis", folder)
		}
	}
}

// Path is the place of the built program below the cache folder. Its folder is named by a digest of all that decides about
// the program: the versions of its module, the edit, the compile and link flags, and the release of Go.
func (p Program) Path(cache string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	versions, err := versionsOf(filepath.Join(root, "hack", "controlplanes", p.Module))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%v\n%q", runtime.Version(), versions, CompileFlags, p.Edit, p.linkFlags()))
	folder := p.Name + "@" + p.Release + "-" + hex.EncodeToString(sum[:6])
	return filepath.Join(cache, "controlplanes", folder, p.Name), nil
}

var versionsRead sync.Map

// versionsOf is a digest of the go.mod and go.sum in a module's folder.
func versionsOf(module string) (string, error) {
	if known, found := versionsRead.Load(module); found {
		return known.(string), nil
	}
	digest := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", fmt.Errorf("reading the versions of the control planes' programs: %w", err)
		}
		digest.Write(content)
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	versionsRead.Store(module, sum)
	return sum, nil
}

func (p Program) existing(cache string) (string, error) {
	path, err := p.Path(cache)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("program %s %s is not built: run `make binaries NEED=%s`", p.Name, p.Release, p.Need)
	}
	return path, nil
}

// unusedFor is how long a program of another version stays in the cache after its last use.
const unusedFor = 30 * 24 * time.Hour

// keepUsed notes that a program is used, and removes those that were not for a month.
func keepUsed(cache string, used []Program) error {
	now := time.Now()
	for _, program := range used {
		path, err := program.Path(cache)
		if err != nil {
			return err
		}
		if err := os.Chtimes(filepath.Dir(path), now, now); err != nil {
			return fmt.Errorf("noting the use of %s: %w", program.Name, err)
		}
	}
	folders, err := os.ReadDir(filepath.Join(cache, "controlplanes"))
	if err != nil {
		return fmt.Errorf("listing the cache: %w", err)
	}
	for _, folder := range folders {
		info, err := folder.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue // another checkout removed it
		}
		if err != nil {
			return fmt.Errorf("listing the cache: %w", err)
		}
		if now.Sub(info.ModTime()) > unusedFor {
			if err := os.RemoveAll(filepath.Join(cache, "controlplanes", folder.Name())); err != nil {
				return fmt.Errorf("removing an unused program from the cache: %w", err)
			}
		}
	}
	return nil
}
