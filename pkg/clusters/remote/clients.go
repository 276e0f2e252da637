package remote

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// held makes a call and holds the weight of its answer until it is decoded.
func held[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	ctx, release := Hold(ctx)
	defer release()
	return call(ctx)
}

// Metadata makes a client that calls Hold for reads. Callers of Patch call Hold themselves.
func (c *Client) Metadata() (metadata.Interface, error) {
	made, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c.Config), c.HTTP)
	if err != nil {
		return nil, err
	}
	return metadataClient{made}, nil
}

type metadataClient struct{ metadata.Interface }

func (c metadataClient) Resource(resource schema.GroupVersionResource) metadata.Getter {
	found := c.Interface.Resource(resource)
	return metadataGetter{metadataResource{found}, found}
}

type metadataGetter struct {
	metadataResource
	getter metadata.Getter
}

func (g metadataGetter) Namespace(name string) metadata.ResourceInterface {
	return metadataResource{g.getter.Namespace(name)}
}

type metadataResource struct{ metadata.ResourceInterface }

func (r metadataResource) Get(
	ctx context.Context, name string, options metav1.GetOptions, sub ...string,
) (*metav1.PartialObjectMetadata, error) {
	return held(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return r.ResourceInterface.Get(ctx, name, options, sub...)
	})
}

func (r metadataResource) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return held(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
		return r.ResourceInterface.List(ctx, options)
	})
}

// Dynamic makes a client that calls Hold.
func (c *Client) Dynamic() (dynamic.Interface, error) {
	made, err := dynamic.NewForConfigAndClient(dynamic.ConfigFor(c.Config), c.HTTP)
	if err != nil {
		return nil, err
	}
	return dynamicClient{made}, nil
}

type dynamicClient struct{ dynamic.Interface }

func (c dynamicClient) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	found := c.Interface.Resource(resource)
	return dynamicNamespaceable{dynamicResource{found}, found}
}

type dynamicNamespaceable struct {
	dynamicResource
	namespaceable dynamic.NamespaceableResourceInterface
}

func (n dynamicNamespaceable) Namespace(name string) dynamic.ResourceInterface {
	return dynamicResource{n.namespaceable.Namespace(name)}
}

type dynamicResource struct{ dynamic.ResourceInterface }

func (r dynamicResource) Get(
	ctx context.Context, name string, options metav1.GetOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	return held(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.ResourceInterface.Get(ctx, name, options, sub...)
	})
}

func (r dynamicResource) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return held(ctx, func(ctx context.Context) (*unstructured.UnstructuredList, error) {
		return r.ResourceInterface.List(ctx, options)
	})
}

func (r dynamicResource) Create(
	ctx context.Context, object *unstructured.Unstructured, options metav1.CreateOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	return held(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.ResourceInterface.Create(ctx, object, options, sub...)
	})
}

func (r dynamicResource) Apply(
	ctx context.Context, name string, object *unstructured.Unstructured, options metav1.ApplyOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	return held(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.ResourceInterface.Apply(ctx, name, object, options, sub...)
	})
}

// Secrets makes a client that calls Hold.
func (c *Client) Secrets() (corev1client.SecretsGetter, error) {
	made, err := corev1client.NewForConfigAndClient(c.Config, c.HTTP)
	if err != nil {
		return nil, err
	}
	return secretsGetter{made}, nil
}

type secretsGetter struct{ corev1client.SecretsGetter }

func (g secretsGetter) Secrets(namespace string) corev1client.SecretInterface {
	return secrets{g.SecretsGetter.Secrets(namespace)}
}

type secrets struct{ corev1client.SecretInterface }

func (s secrets) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error) {
	return held(ctx, func(ctx context.Context) (*corev1.Secret, error) { return s.SecretInterface.Get(ctx, name, options) })
}

func (s secrets) List(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	return held(ctx, func(ctx context.Context) (*corev1.SecretList, error) { return s.SecretInterface.List(ctx, options) })
}

func (s secrets) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	return held(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return s.SecretInterface.Create(ctx, secret, options)
	})
}

func (s secrets) Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error) {
	return held(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return s.SecretInterface.Update(ctx, secret, options)
	})
}

// Kinds makes a controller-runtime client that calls Hold. It requests JSON, except for metadata.
func (c *Client) Kinds(options client.Options) (client.Client, error) {
	options.HTTPClient = c.HTTP
	made, err := client.New(c.Config, options)
	if err != nil {
		return nil, err
	}
	return kinds{made}, nil
}

type kinds struct{ client.Client }

func (k kinds) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return k.Client.Get(ctx, key, object, options...)
}

func (k kinds) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return k.Client.List(ctx, list, options...)
}

func (k kinds) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return k.Client.Create(ctx, object, options...)
}

func (k kinds) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return k.Client.Update(ctx, object, options...)
}

func (k kinds) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return k.Client.Patch(ctx, object, patch, options...)
}

func (k kinds) Status() client.SubResourceWriter { return kindStatus{k.Client.Status()} }

type kindStatus struct{ client.SubResourceWriter }

func (s kindStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	ctx, release := Hold(ctx)
	defer release()
	return s.SubResourceWriter.Patch(ctx, object, patch, options...)
}
