package lru_test

import (
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/trellis-addons/trellis/pkg/base/lru"
)

// kept is a cache of two values, and its clock.
func kept() (*lru.Cache[string, int], *time.Time) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	return lru.New[string, int](2, func() time.Time { return now }), &now
}

func expect(t *testing.T, cache *lru.Cache[string, int], want map[string]int) {
	t.Helper()
	for key, value := range want {
		if got, known := cache.Get(key); got != value || known != (value != 0) {
			t.Errorf("%q: got %d, %t, want %d", key, got, known, value)
		}
	}
}

// Red when Get does not count as use.
func TestTheOneNotUsedForLongestGoes(t *testing.T) {
	cache, _ := kept()
	cache.Put("a", 1, lru.Forever)
	cache.Put("b", 2, lru.Forever)
	expect(t, cache, map[string]int{"a": 1})
	cache.Put("c", 3, lru.Forever)
	expect(t, cache, map[string]int{"a": 1, "b": 0, "c": 3})
	cache.Put("c", 4, lru.Forever)
	expect(t, cache, map[string]int{"a": 1, "c": 4})
}

func TestValuesHaveALife(t *testing.T) {
	cache, now := kept()
	cache.Put("a", 1, time.Second)
	*now = now.Add(time.Second - 1)
	expect(t, cache, map[string]int{"a": 1})
	*now = now.Add(1)
	expect(t, cache, map[string]int{"a": 0})
	for _, none := range []time.Duration{0, -time.Second} {
		cache.Put("b", 2, none)
		expect(t, cache, map[string]int{"b": 0})
	}
}

// Red when what is over stays until the cache is full: values may be secrets of what is gone.
func TestWhatIsOverGoesWithTheNext(t *testing.T) {
	var now time.Time
	cache := lru.New[int, int](0, func() time.Time { return now })
	for key := range 100 {
		cache.Put(key, key, time.Second)
	}
	if got := cache.Len(); got != 100 {
		t.Errorf("%d values of 100 are kept", got)
	}
	now = now.Add(time.Second)
	cache.Put(-1, 0, time.Second)
	if got := cache.Len(); got != 1 {
		t.Errorf("%d values are kept, 1 of which lives", got)
	}
}

func TestRenewBeginsALifeAgain(t *testing.T) {
	var cache lru.Cache[string, *int]
	made := func() *int { return new(int) }
	first := cache.Renew("a", time.Hour, made)
	if cache.Renew("a", time.Hour, made) != first {
		t.Error("a value was made twice")
	}
	timed, now := kept()
	one := func() int { return 1 }
	timed.Renew("a", time.Second, one)
	for range 3 {
		*now = now.Add(time.Second / 2)
		timed.Renew("a", time.Second, func() int { t.Error("made anew, although in use"); return 2 })
	}
	*now = now.Add(time.Second)
	expect(t, timed, map[string]int{"a": 0})
}

func TestManyUseItAtOnce(t *testing.T) {
	cache := lru.New[int, int](10, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 1000 {
				cache.Put(i%20, i, time.Minute)
				cache.Get(i % 15)
				cache.Renew(i%5, time.Minute, func() int { return i })
			}
		})
	}
	group.Wait()
	if got := cache.Len(); got > 10 {
		t.Errorf("%d values are kept, 10 at most", got)
	}
}

func BenchmarkGet(b *testing.B) {
	keys := []string{">= 1.34, < 1.38", "1.x", ">= 2.30", "~1.36.0"}
	b.Run("this", func(b *testing.B) {
		kept := lru.New[string, int](4096, nil)
		for i, key := range keys {
			kept.Put(key, i, lru.Forever)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			kept.Get(keys[i%len(keys)])
		}
	})
	b.Run("apimachinery", func(b *testing.B) {
		kept := cache.NewLRUExpireCache(4096)
		for i, key := range keys {
			kept.Add(key, i, time.Hour)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			kept.Get(keys[i%len(keys)])
		}
	})
	b.Run("map", func(b *testing.B) {
		var mutex sync.Mutex
		kept := map[string]int{}
		for i, key := range keys {
			kept[key] = i
		}
		b.ReportAllocs()
		sum := 0
		for i := 0; b.Loop(); i++ {
			mutex.Lock()
			sum += kept[keys[i%len(keys)]]
			mutex.Unlock()
		}
	})
}
