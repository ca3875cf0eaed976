"""The paper's other arms: baselines and variants of its studies."""
