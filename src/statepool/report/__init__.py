"""What the reports of studies and audit share: sheets and colours, drawings inside a page, the page itself."""
