// Command helm installs a chart many times by Helm's SDK, as controllers do that are built on it, and prints what it took.
// It is what benchmarks compare Trellis with; it is a module of its own, so that the SDK's action package stays out of the
// product.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// options are the flags.
type options struct {
	kubeconfig, namespace, chart, prefix string
	count, concurrency                   int
	validate, apart                      bool
}

// report is what is printed.
type report struct {
	// Seconds from the first release's begin to the last one's end; CPUSeconds of this process in that time.
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Releases   int     `json:"releases"`
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "file of the cluster's kubeconfig")
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the releases")
	flag.StringVar(&o.chart, "chart", "", "file of the chart's archive")
	flag.StringVar(&o.prefix, "prefix", "release", "what the releases' names begin with")
	flag.IntVar(&o.count, "count", 1, "how many releases to install")
	flag.IntVar(&o.concurrency, "concurrency", 10, "how many of them at a time")
	flag.BoolVar(&o.validate, "validate", false, "validate against the cluster's OpenAPI document, which is the SDK's default")
	flag.BoolVar(&o.apart, "apart", false, "have each release find out by itself what the cluster serves, which is the SDK's default")
	flag.Parse()
	made, err := run(context.Background(), o)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(made)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (report, error) {
	archive, err := os.ReadFile(o.chart)
	if err != nil {
		return report{}, err
	}
	shared, err := newGetter(o.kubeconfig, o.namespace)
	if err != nil {
		return report{}, err
	}
	if _, err := shared.mapper.RESTMappings(someKind); err != nil { // discovery is warm, as in a controller that runs
		return report{}, err
	}
	begin, before := time.Now(), cpu()
	numbers := make(chan int, o.count)
	for number := range o.count {
		numbers <- number
	}
	close(numbers)
	failures := make(chan error, o.count)
	var working sync.WaitGroup
	for range o.concurrency {
		working.Go(func() {
			for number := range numbers {
				failures <- install(ctx, shared, o, archive, number)
			}
		})
	}
	working.Wait()
	close(failures)
	var all error
	for failure := range failures {
		all = errors.Join(all, failure)
	}
	return report{time.Since(begin).Seconds(), (cpu() - before).Seconds(), o.count}, all
}

// install makes one release, with a Configuration of its own.
func install(ctx context.Context, shared *getter, o options, archive []byte, number int) error {
	from := shared
	if o.apart {
		var err error
		if from, err = newGetter(o.kubeconfig, o.namespace); err != nil {
			return err
		}
	}
	configuration := new(action.Configuration)
	if err := configuration.Init(from, o.namespace, "secrets", func(string, ...any) {}); err != nil {
		return err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	installing := action.NewInstall(configuration)
	installing.ReleaseName, installing.Namespace = fmt.Sprintf("%s-%03d", o.prefix, number), o.namespace
	installing.DisableOpenAPIValidation = !o.validate
	_, err = installing.RunWithContext(ctx, chart, map[string]any{"name": installing.ReleaseName})
	return err
}

// getter gives every release the same configuration, discovery and mapper.
type getter struct {
	config    *rest.Config
	loader    clientcmd.ClientConfig
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

// someKind is one that every cluster has.
var someKind = schema.GroupKind{Kind: "Secret"}

var _ genericclioptions.RESTClientGetter = (*getter)(nil)

// newGetter reads a kubeconfig; what charts leave without a namespace goes to that one.
func newGetter(kubeconfig, namespace string) (*getter, error) {
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	read, err := clientcmd.Load(content)
	if err != nil {
		return nil, err
	}
	loaded := clientcmd.NewDefaultClientConfig(*read, &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: namespace}})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(client)
	return &getter{config, loaded, cached, restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// ToRESTConfig implements RESTClientGetter, as do the methods below.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient gives the shared one.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.discovery, nil
}

// ToRESTMapper gives the shared one.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) { return g.mapper, nil }

// ToRawKubeConfigLoader gives the kubeconfig.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig { return g.loader }

func cpu() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
